"""The official SDK's client, for agents of our own: goes through a conversation with each.

Arguments are the address, the version (`1.0` or `0.3`) and the binding (`REST` or another) of each.
"""

import asyncio
import sys

import httpx

from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotFoundError


def request(text, quick=False, **ids):
    message = Message(message_id='m', role=Role.ROLE_USER, parts=[Part(text=text)], **ids)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=quick))


async def ask(client, text, **more):
    return [event async for event in client.send_message(request(text, **more))]


async def converse(url, older, rest, streaming):
    bindings = ['JSONRPC', 'HTTP+JSON']
    http = httpx.AsyncClient(trust_env=False, timeout=20)
    client = await create_client(url, ClientConfig(streaming, httpx_client=http, supported_protocol_bindings=bindings))
    [said] = await ask(client, 'echo hi there')
    assert said.message.parts[0].text == 'hi there', said
    last = (await ask(client, 'ask'))[-1]
    waiting = last.task if last.HasField('task') else last.status_update
    assert waiting.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, last
    assert waiting.status.message.parts[0].text == 'what is your name?', last
    task_id = waiting.id if last.HasField('task') else waiting.task_id
    await ask(client, 'Ada', task_id=task_id, context_id=waiting.context_id)
    task = await client.get_task(GetTaskRequest(id=task_id))
    assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
    assert task.artifacts[0].parts[0].text == 'hello Ada', task
    assert [message.role for message in task.history] == [Role.ROLE_USER, Role.ROLE_AGENT, Role.ROLE_USER], task
    for late in [ask(client, 'more', task_id=task_id), client.cancel_task(CancelTaskRequest(id=task_id))]:
        try:
            raise AssertionError(await late)
        except A2AError as error:
            assert not isinstance(error, TaskNotFoundError), repr(error)
    try:
        raise AssertionError(await client.get_task(GetTaskRequest(id='never')))
    except TaskNotFoundError:
        pass
    except A2AError:
        # In 0.3, what is not found by REST has no name.
        assert older and rest
    await ask(client, 'file', context_id='files')
    events = await ask(client, 'data', context_id='files')
    if streaming:
        [part] = next(event for event in events if event.HasField('artifact_update')).artifact_update.artifact.parts
        assert part.data.struct_value['answer'] == 42, events
        chunks = [event.artifact_update for event in await ask(client, 'stream 3') if event.HasField('artifact_update')]
        assert [chunk.append for chunk in chunks] == [False, True, True], chunks
        held = request('slow 400 x')
        async for first in client.send_message(held):
            break
        assert first.HasField('task'), first
        task_id, events = first.task.id, []
        async for event in client.subscribe(SubscribeToTaskRequest(id=task_id)):
            events.append(event)
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events
    await push(client, task_id, older and rest)
    if not streaming:
        [started] = await ask(client, 'slow 60000 x', quick=True)
        canceled = await client.cancel_task(CancelTaskRequest(id=started.task.id))
        assert canceled.status.state == TaskState.TASK_STATE_CANCELED, canceled
    if not older:
        page = await client.list_tasks(ListTasksRequest(context_id='files', include_artifacts=True, page_size=1))
        assert page.total_size >= 2 and len(page.tasks) == 1 and page.next_page_token, page
    card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    assert 'secret' in [skill.id for skill in card.skills], card
    await client.close()


async def push(client, task_id, few):
    config = TaskPushNotificationConfig(task_id=task_id, id='c', url='http://127.0.0.1:1/', token='t')
    made = await client.create_task_push_notification_config(config)
    assert (made.task_id, made.id, made.url, made.token) == (task_id, 'c', 'http://127.0.0.1:1/', 't'), made
    got = await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=task_id, id='c'))
    assert got == made, got
    if few:
        return
    listed = await client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task_id))
    assert list(listed.configs) == [made], listed
    await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id=task_id, id='c'))


async def all_of_them():
    given = sys.argv[1:]
    for url, version, binding in zip(given[0::3], given[1::3], given[2::3], strict=True):
        for streaming in [True, False]:
            try:
                await converse(url, version == '0.3', binding == 'REST', streaming)
            except BaseException:
                print(version, binding, 'streams' if streaming else 'waits', file=sys.stderr)
                raise


asyncio.run(all_of_them())
