"""An agent on FastA2A that does what the text of a message says. Its streams have states alone. The first line of output is the
address."""

import asyncio
import base64
import os
import socket
import sys
import threading
import uuid
from contextlib import asynccontextmanager, suppress

import uvicorn
from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.storage import InMemoryStorage


def text_of(message):
    return next((part['text'] for part in message['parts'] if 'text' in part), '')


def answer(turns):
    """The part of the reply."""
    text = text_of(turns[-1])
    word, _, rest = text.partition(' ')
    if word == 'file':
        file = {'bytes': base64.b64encode(b'evil \x00\xff bytes\n').decode(), 'name': 'evil.bin'}
        return {'kind': 'file', 'file': file}
    if word == 'got':
        files = [part for part in turns[-1]['parts'] if 'filename' in part]
        text = ''.join(f'{part["filename"]} {len(base64.b64decode(part["raw"]))}\n' for part in files)
    elif word == 'stream':
        text = ''.join(f'chunk {number + 1}\n' for number in range(int(rest)))
    elif word == 'ask':
        text = 'what is your name?'
    elif len(turns) > 1 and text_of(turns[-2]) == 'ask':
        text = f'hello {text}'
    else:
        text = rest.split(' ')[-1]
    return {'kind': 'text', 'text': text}


class Scripted(Worker):
    running = {}

    async def run_task(self, params):
        self.running[params['id']] = task = asyncio.create_task(self.work(params))
        with suppress(asyncio.CancelledError):
            await task

    async def work(self, params):
        await self.storage.update_task(params['id'], state='working')
        words = text_of(params['message']).split()
        if words[:1] == ['slow']:
            await asyncio.sleep(int(words[1]) / 1000)
        turns = [*(await self.storage.load_context(params['context_id']) or []), params['message']]
        await self.storage.update_context(params['context_id'], turns)
        artifact = {'artifact_id': str(uuid.uuid4()), 'name': 'result', 'parts': [answer(turns)]}
        await self.storage.update_task(params['id'], state='completed', new_artifacts=[artifact], new_messages=[])

    async def cancel_task(self, params):
        if task := self.running.get(params['id']):
            task.cancel()
        await self.storage.update_task(params['id'], state='canceled')

    def build_message_history(self, history):
        return history

    def build_artifacts(self, result):
        return []


@asynccontextmanager
async def lifespan(app):
    # A worker takes one task, or one cancellation, at a time.
    async with app.task_manager, worker.run(), worker.run():
        yield


listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen()
url = f'http://127.0.0.1:{listener.getsockname()[1]}'
storage, broker = InMemoryStorage(), InMemoryBroker()
worker = Scripted(storage=storage, broker=broker)
app = FastA2A(storage=storage, broker=broker, lifespan=lifespan, url=url)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print(url, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level='warning')).run(sockets=[listener])
