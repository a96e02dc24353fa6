// An agent on the official SDK for JavaScript, of version 1.x or 0.3. It does what the text of a message says, as the agents in
// Python do: echo, task, slow, stream, ask, file, data, got.
//
// The first line of output is the address. It ends with its standard input.

import { randomUUID } from 'node:crypto';
import express from 'express';
import * as sdk from '@a2a-js/sdk';
import * as server from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const isOne = process.argv[2] === '1';
const wait = (millis) => new Promise((done) => setTimeout(done, millis));

// Objects in the JSON of version 1.0; those of version 0.3 have other names.
const states = { submitted: 'SUBMITTED', working: 'WORKING', completed: 'COMPLETED', canceled: 'CANCELED', 'input-required': 'INPUT_REQUIRED' };
const state = (word) => (isOne ? `TASK_STATE_${states[word]}` : word);
function part(kind, value, name) {
  if (kind === 'text') return isOne ? { text: value } : { kind, text: value };
  if (kind === 'data') return isOne ? { data: value } : { kind, data: value };
  const bytes = Buffer.from(value, 'latin1').toString('base64');
  const mime = 'application/octet-stream';
  return isOne ? { raw: bytes, filename: name, mediaType: mime } : { kind: 'file', file: { bytes, name, mimeType: mime } };
}
function message(context, text) {
  const ids = { messageId: randomUUID(), contextId: context.contextId };
  return { ...(isOne ? {} : { kind: 'message' }), ...ids, role: isOne ? 'ROLE_AGENT' : 'agent', parts: [part('text', text)] };
}

class Turn {
  constructor(context, bus) {
    Object.assign(this, { context, bus, ids: { taskId: context.taskId, contextId: context.contextId } });
  }

  publish(type, kind, json) {
    if (isOne) this.bus.publish(server.AgentEvent[type](sdk[kind].fromJSON(json)));
    else this.bus.publish(json);
  }

  reply(text) {
    this.publish('message', 'Message', message(this.context, text));
  }

  begin() {
    const { taskId, contextId } = this.ids;
    const status = { state: state('submitted'), timestamp: new Date().toISOString() };
    const history = isOne ? [sdk.Message.toJSON(this.context.userMessage)] : [this.context.userMessage];
    this.publish('task', 'Task', { ...(isOne ? {} : { kind: 'task' }), id: taskId, contextId, status, history });
  }

  status(word, text) {
    const isFinal = !['submitted', 'working'].includes(word);
    const status = { state: state(word), timestamp: new Date().toISOString() };
    if (text) status.message = message(this.context, text);
    this.publish('statusUpdate', 'TaskStatusUpdateEvent', { ...(isOne ? {} : { kind: 'status-update', final: isFinal }), ...this.ids, status });
  }

  artifact(parts, name, append = false, lastChunk = true) {
    const artifact = { artifactId: name, name, parts };
    this.publish('artifactUpdate', 'TaskArtifactUpdateEvent', { ...(isOne ? {} : { kind: 'artifact-update' }), ...this.ids, artifact, append, lastChunk });
  }
}

class Executor {
  canceled = new Set();

  async execute(context, bus) {
    const turn = new Turn(context, bus);
    const json = isOne ? sdk.Message.toJSON(context.userMessage) : context.userMessage;
    const text = json.parts.map((one) => one.text ?? '').join('').trim();
    const [word, ...rest] = text.split(' ');
    await this.play(turn, word, rest.join(' '), json, context.task);
    bus.finished();
  }

  async play(turn, word, rest, json, task) {
    if (task) {
      turn.artifact([part('text', `hello ${word}`)], 'greeting');
      return turn.status('completed');
    }
    if (word === 'echo') return turn.reply(rest);
    if (word === 'got') {
      const names = json.parts.map((one) => one.filename ?? one.file?.name ?? (one.data || one.kind === 'data' ? 'data' : 'text'));
      return turn.reply(names.join(' '));
    }
    turn.begin();
    if (word === 'ask') return turn.status('input-required', 'what is your name?');
    turn.status('working');
    if (word === 'slow') {
      const [millis, ...words] = rest.split(' ');
      for (let step = 0; step < 20; step += 1) {
        await wait(Number(millis) / 20);
        if (this.canceled.has(turn.ids.taskId)) return turn.status('canceled');
      }
      turn.artifact([part('text', words.join(' '))], 'result');
    } else if (word === 'stream') {
      const count = Number(rest || 3);
      for (let chunk = 1; chunk <= count; chunk += 1) {
        turn.artifact([part('text', `chunk ${chunk}\n`)], 'chunks', chunk > 1, chunk === count);
        await wait(5);
      }
    } else if (word === 'file') turn.artifact([part('file', 'evil \x00\xff bytes\n', '../../evil')], 'file');
    else if (word === 'data') turn.artifact([part('data', { answer: 42 })], 'data');
    else turn.artifact([part('text', rest)], 'result');
    turn.status('completed');
  }

  cancelTask = async (taskId) => {
    this.canceled.add(taskId);
  };
}

const app = express();
const listener = app.listen(0, '127.0.0.1', () => {
  const base = `http://127.0.0.1:${listener.address().port}`;
  const common = {
    name: 'javascript', description: 'Does what the messages say.', version: '1',
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 'echo', name: 'echo', description: 'Knows echo.', tags: ['test'] }],
  };
  const bindings = [['JSONRPC', `${base}/rpc`], ['HTTP+JSON', `${base}/rest`]];
  const card = isOne
    ? sdk.AgentCard.fromJSON({ ...common, supportedInterfaces: bindings.map(([protocolBinding, url]) => ({ url, protocolBinding, protocolVersion: '1.0' })) })
    : { ...common, protocolVersion: '0.3.0', url: `${base}/rpc`, preferredTransport: 'JSONRPC', additionalInterfaces: bindings.map(([transport, url]) => ({ url, transport })) };
  const requestHandler = new server.DefaultRequestHandler(card, new server.InMemoryTaskStore(), new Executor());
  const userBuilder = UserBuilder.noAuthentication;
  app.use(`/${sdk.AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder }));
  app.use('/rest', restHandler({ requestHandler, userBuilder }));
  console.log(base);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
