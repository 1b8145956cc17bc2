import { describe, expect, it } from 'vitest'

import { inputSent, way } from './travel'
import { turn } from './turn.fixture'

describe('how a turn travelled', () => {
  it('names the connection and what was left out', () => {
    const held = turn({ id: 'a', transport: 'ws', socket: 'reused', input_items: 24, new_items: 3 })
    expect([way(held), inputSent(held)]).toEqual(['WebSocket, reused', '3 new items of 24'])
  })

  it('says why everything was sent', () => {
    const whole_reason = 'item 4 (function_call) differs in `arguments`'
    const broken = turn({ id: 'a', transport: 'ws', socket: 'reused', input_items: 24, whole_reason })
    expect(inputSent(broken)).toBe(`all 24 items: ${whole_reason}`)
    const alone = turn({ id: 'a', input_items: 1 })
    expect([way(alone), inputSent(alone)]).toEqual(['SSE', 'its one item'])
  })

  it('says nothing of what was not sent yet', () => {
    expect([way(turn({ id: 'a' })), inputSent(turn({ id: 'a' }))]).toEqual(['–', '–'])
  })
})
