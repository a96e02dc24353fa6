"""An agent on the official SDK 1.x: protocol 1.0, and 0.3 where the options ask for it."""

import base64
import json
import time
import uuid

import httpx
from agent_common import BaseKit, Executor, ForgetfulHandler, Setting, digest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
)
from a2a.types import AgentCard, Message, Part, Role, Task, TaskState, TaskStatus
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError


def part_of(kind, *what):
    if kind == 'text':
        return Part(text=what[0])
    if kind == 'data':
        return Part(data=ParseDict(what[0], Value()), media_type='application/json')
    return Part(raw=what[0], filename=what[1], media_type=what[2])


class Kit(BaseKit):
    part_of = staticmethod(part_of)

    def __init__(self, context, queue, store):
        super().__init__(context, queue, store, context.tenant)

    async def reply(self, text, filename=None):
        # A message of no task: the id that was made up for one is not told.
        parts = [Part(text=text, filename=filename, media_type='text/markdown') if filename else Part(text=text)]
        await self.queue.enqueue_event(
            Message(role=Role.ROLE_AGENT, message_id=str(uuid.uuid4()), context_id=self.context_id, parts=parts)
        )

    async def begin(self):
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        status.timestamp.GetCurrentTime()
        task = Task(id=self.task_id, context_id=self.context_id, status=status, history=[self.context.message])
        await self.queue.enqueue_event(task)

    async def status(self, state, text=None):
        message = self.updater.new_agent_message([Part(text=text)]) if text else None
        await self.updater.update_status(TaskState.Value(f'TASK_STATE_{state.upper().replace("-", "_")}'), message)

    def describe(self):
        parts = []
        for part in self.context.message.parts:
            shown = MessageToDict(part)
            if part.WhichOneof('content') == 'raw':
                shown['raw'] = digest(part.raw)
            parts.append(shown)
        configuration = MessageToDict(self.context.configuration)
        return json.dumps({'parts': parts, 'configuration': configuration, 'metadata': self.context.metadata})


class PushSignature(httpx.Auth):
    """Signs notifications by a JWT for their body, with a key of its own."""

    requires_request_body = True

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self.key.public_key().public_numbers()
        jwk = {'kty': 'RSA', 'kid': 'push', 'use': 'sig', 'alg': 'RS256'}
        jwk['n'], jwk['e'] = (base64url(n.to_bytes((n.bit_length() + 7) // 8)) for n in (numbers.n, numbers.e))
        self.jwks = {'keys': [jwk]}

    def auth_flow(self, request):
        claims = {'iss': 'agent', 'aud': str(request.url), 'iat': int(time.time())}
        claims['jti'], claims['request_body_sha256'] = str(uuid.uuid4()), digest(request.content)
        parts = [base64url(json.dumps(part).encode()) for part in ({'alg': 'RS256', 'kid': 'push'}, claims)]
        message = '.'.join(parts)
        signature = self.key.sign(message.encode(), padding.PKCS1v15(), hashes.SHA256())
        request.headers['Authorization'] = f'Bearer {message}.{base64url(signature)}'
        yield request


def base64url(body):
    return base64.urlsafe_b64encode(body).decode().rstrip('=')


class Handler(ForgetfulHandler):
    def check(self, message):
        if message.task_id and self.memory.forgot('', message.task_id):
            raise TaskNotFoundError(message=f'Task {message.task_id} was not found')
        if self.memory.forgot(message.context_id, ''):
            raise InvalidParamsError(message=f'Context {message.context_id} has expired')


setting = Setting()
options = setting.options
card = ParseDict(options['card'], AgentCard())
store = InMemoryTaskStore()
more = {}
if options['push']:
    configs = InMemoryPushNotificationConfigStore()
    signature = PushSignature() if options['signed_push'] else None
    sender = BasePushNotificationSender(httpx.AsyncClient(trust_env=False, auth=signature), configs)
    more = {'push_config_store': configs, 'push_sender': sender}
if options['extended_card']:
    more['extended_agent_card'] = ParseDict(options['extended_card'], AgentCard())
handler = Handler(Executor(Kit, Handler.memory, store), store, card, **more)
compat = options['compat']
routes = create_agent_card_routes(card)
if options['older_card_path']:
    routes += create_agent_card_routes(card, card_url='/.well-known/agent.json')
if options['signed_push']:
    routes.append(Route('/.well-known/jwks.json', lambda _: JSONResponse(signature.jwks)))
routes += create_jsonrpc_routes(handler, '/rpc', enable_v0_3_compat=compat)
routes.append(Mount('/rest', routes=create_rest_routes(handler, enable_v0_3_compat=compat)))
setting.serve(Starlette(routes=routes))
