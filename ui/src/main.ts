import './locale-guard'
import './app.css'
import { mount } from 'svelte'
import App from './App.svelte'
import { connect } from './host'
import { takeKey } from './key'
import { Picture } from './picture.svelte'

const target = document.getElementById('page')
if (!target) throw new Error('index.html has lost its #page')

const picture = new Picture(connect(takeKey(window)))
mount(App, { target, props: { picture } })

// `weir open` may bring a new key to a page that is already there: then only the fragment changes.
window.addEventListener('hashchange', () => {
  const key = takeKey(window)
  if (key !== null) picture.reconnect(connect(key))
})
