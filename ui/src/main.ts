import './locale-guard'
import './app.css'
import { mount } from 'svelte'
import App from './App.svelte'
import { DesktopHost, inDesktop } from './desktop'
import { HttpHost } from './http'
import { Picture } from './picture.svelte'

const target = document.getElementById('page')
if (!target) throw new Error('index.html has lost its #page')

if (inDesktop(window)) {
  mount(App, { target, props: { picture: new Picture(new DesktopHost()) } })
} else {
  const host = new HttpHost(window)
  const picture = new Picture(host)
  mount(App, { target, props: { picture } })
  // `weir open` may bring a new ticket to a page that is already there: then only the fragment changes.
  window.addEventListener('hashchange', () => {
    if (host.takeTicket()) picture.again()
  })
}
