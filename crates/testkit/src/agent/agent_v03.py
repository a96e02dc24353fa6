"""An agent on the official SDK 0.3."""

import base64
import json
import uuid

import httpx
from agent_common import BaseKit, Executor, ForgetfulHandler, Setting, digest
from fastapi import FastAPI

from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
)
from a2a.types import (
    AgentCard,
    DataPart,
    FilePart,
    FileWithBytes,
    InvalidParamsError,
    Message,
    Part,
    Role,
    Task,
    TaskNotFoundError,
    TaskState,
    TaskStatus,
    TextPart,
)
from a2a.utils.errors import ServerError


def part_of(kind, *what):
    if kind == 'text':
        return Part(root=TextPart(text=what[0]))
    if kind == 'data':
        return Part(root=DataPart(data=what[0]))
    body = base64.b64encode(what[0]).decode()
    return Part(root=FilePart(file=FileWithBytes(bytes=body, name=what[1], mime_type=what[2])))


class Kit(BaseKit):
    part_of = staticmethod(part_of)

    def __init__(self, context, queue, store):
        super().__init__(context, queue, store, '')

    async def reply(self, text, filename=None):
        # Texts have no file names in this version.
        # A message of no task: the id that was made up for one is not told.
        parts = [Part(root=TextPart(text=text))]
        await self.queue.enqueue_event(
            Message(role=Role.agent, message_id=str(uuid.uuid4()), context_id=self.context_id, parts=parts)
        )

    async def begin(self):
        status, history = TaskStatus(state=TaskState.submitted), [self.context.message]
        await self.queue.enqueue_event(
            Task(id=self.task_id, context_id=self.context_id, status=status, history=history)
        )

    async def status(self, state, text=None):
        message = self.updater.new_agent_message([Part(root=TextPart(text=text))]) if text else None
        ends = state in ('completed', 'failed', 'rejected', 'input-required', 'auth-required')
        await self.updater.update_status(TaskState(state), message, final=ends)

    def describe(self):
        parts = []
        for part in self.context.message.parts:
            shown = part.model_dump(mode='json', exclude_none=True, by_alias=True)
            if shown.get('file', {}).get('bytes'):
                try:
                    shown['file']['bytes'] = digest(base64.b64decode(shown['file']['bytes'], validate=True))
                except ValueError:
                    shown['file']['bytes'] = 'not base64'
            parts.append(shown)
        configuration = self.context.configuration
        shown = configuration.model_dump(mode='json', exclude_none=True, by_alias=True) if configuration else {}
        return json.dumps({'parts': parts, 'configuration': shown, 'metadata': self.context.metadata})


class Handler(ForgetfulHandler):
    def check(self, message):
        if message.task_id and self.memory.forgot('', message.task_id):
            raise ServerError(TaskNotFoundError(message=f'Task {message.task_id} was not found'))
        if self.memory.forgot(message.context_id, ''):
            raise ServerError(InvalidParamsError(message=f'Context {message.context_id} has expired'))


setting = Setting()
options = setting.options
card = AgentCard.model_validate(options['card'])
extended = AgentCard.model_validate(options['extended_card']) if options['extended_card'] else None
store = InMemoryTaskStore()
more = {}
if options['push']:
    configs = InMemoryPushNotificationConfigStore()
    sender = BasePushNotificationSender(httpx.AsyncClient(trust_env=False), configs)
    more = {'push_config_store': configs, 'push_sender': sender}
handler = Handler(Executor(Kit, Handler.memory, store), store, **more)
app = A2ARESTFastAPIApplication(card, handler, extended_agent_card=extended).build(rpc_url='/rest')
A2AStarletteApplication(card, handler, extended_agent_card=extended).add_routes_to_app(app, rpc_url='/rpc')
assert isinstance(app, FastAPI)
setting.serve(app)
