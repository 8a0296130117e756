import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

import { Broker } from '../broker.js'

let broker

before(async () => { broker = await Broker.start() })
after(() => broker.stop())

test('a group reads what was produced, and goes on where it was', async () => {
  const connection = { clientId: 'test', bootstrapBrokers: broker.bootstrapBrokers }
  const admin = new Admin(connection)
  await admin.createTopics({ topics: ['greetings'], partitions: 3, replicas: 1 })
  await admin.close()

  await produce(connection, ['hello', 'good morning', 'good night'])
  assert.deepEqual(await read(connection, 3), ['good morning', 'good night', 'hello'])

  await produce(connection, ['welcome'])
  assert.deepEqual(await read(connection, 1), ['welcome'])
})

async function produce (connection, values) {
  const producer = new Producer({ ...connection, serializers: stringSerializers })
  await producer.send({ messages: values.map(value => ({ topic: 'greetings', key: value, value })) })
  await producer.close()
}

/** The next values of the group, sorted: partitions are read in no certain order. */
async function read (connection, count) {
  const consumer = new Consumer({ ...connection, groupId: 'readers', deserializers: stringDeserializers })
  const stream = await consumer.consume({ topics: ['greetings'], mode: 'committed', fallbackMode: 'earliest', autocommit: false })
  const values = []
  for await (const message of stream) {
    values.push(message.value)
    await message.commit()
    if (values.length === count) break
  }
  await consumer.close(true)
  return values.sort()
}
