// A pykbroker for tests: a child process that goes with this one, however this one ends.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const START_DEADLINE_MS = 60_000
const STOP_DEADLINE_MS = 20_000

export class Broker {
  #process
  #directory

  /** settings: properties of the broker, such as { 'num.partitions': 3 }. */
  static async start (settings = {}) {
    const directory = await mkdtemp(join(tmpdir(), 'broker-'))
    const logFile = join(directory, 'log')
    const log = openSync(logFile, 'w') // a pipe that nobody reads would fill up, and hold the broker
    const overrides = Object.entries(settings).flatMap(([key, value]) => ['--override', `${key}=${value}`])
    const child = spawn(
      process.env.PYKBROKER ?? 'pykbroker',
      ['start', '--ephemeral', '--dev', '--port', '0', '--die-with-parent', ...overrides],
      { stdio: ['pipe', 'pipe', log] } // standard input is the pipe by which the broker sees the end of this process
    )
    closeSync(log)
    const broker = new Broker()
    broker.#process = child
    broker.#directory = directory
    try {
      broker.bootstrapBrokers = await firstAddress(child)
    } catch (error) {
      const lines = await readFile(logFile, 'utf8')
      await broker.stop()
      throw new Error(`pykbroker did not start\n${lines}`, { cause: error })
    }
    child.stdin.unref() // nor does the broker keep this process from ending
    child.stdout.unref()
    child.unref()
    return broker
  }

  async stop () {
    const child = this.#process
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      child.ref()
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_DEADLINE_MS)
      await ended
      clearTimeout(timer)
    }
    await rm(this.#directory, { recursive: true, force: true })
  }
}

/** The address in the ready line: `pykbroker ready: PLAINTEXT://127.0.0.1:40123 node.id=1 …`. */
async function firstAddress (child) {
  const over = new AbortController()
  try {
    const line = await Promise.race([
      once(createInterface(child.stdout), 'line', { signal: over.signal }).then(([text]) => text),
      once(child, 'exit', { signal: over.signal }).then(([code]) => { throw new Error(`exit code ${code}`) }),
      sleep(START_DEADLINE_MS, undefined, { signal: over.signal }).then(() => { throw new Error('it took too long') })
    ])
    return [/^pykbroker ready: \w+:\/\/(\S+)/.exec(line)[1]]
  } finally {
    over.abort()
  }
}
