//! Answers of an agent.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::authentication::{account, challenge};
use crate::demo_agent::RequestHook;
use crate::http::{ChunkedReply, ReceivedRequest, reply};
use crate::listing;
use crate::options::{AgentAuth, AgentBinding, AgentOptions, Protocol};
use crate::script::{AgentCaller, ScriptOutcome, rest, take};
use crate::tasks::{Tasks, is_last, is_terminal};
use crate::wire::{Action, AgentCall, Fault, ReplyTarget};

/// State that the connections of an agent share.
pub(crate) struct AgentShared {
    pub(crate) options: AgentOptions,
    pub(crate) base: String,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) hook: Option<RequestHook>,
}

impl AgentShared {
    /// Answers a request, and returns whether the connection may be used again.
    pub(crate) fn answer(&self, seen: &ReceivedRequest, stream: &mut TcpStream) -> std::io::Result<bool> {
        // First, so that it sees requests that are refused too.
        if let Some(done) = self.hook.as_ref().and_then(|hook| hook(seen, stream)) {
            return done;
        }
        if seen.path.starts_with("/.well-known/") {
            return self.answer_card(seen, stream);
        }
        let account = account(&self.options, seen);
        if self.options.auth != AgentAuth::None && account.is_none() {
            let challenge = format!("WWW-Authenticate: {}\r\n", challenge(&self.options.auth));
            return reply(stream, 401, "application/json", &challenge, "{\"error\": \"unauthorized\"}");
        }
        match AgentCall::read(seen).and_then(|asked| self.check(seen, asked)) {
            Ok(asked) => match asked.action {
                Action::Send | Action::Stream => {
                    self.answer_message(&asked, &AgentCaller { account, seen }, stream)
                }
                Action::Subscribe => self.answer_subscribe(&asked, stream),
                _ => match self.answer_rest(&asked) {
                    Ok(body) => reply(stream, 200, asked.place().media_type(), "", &body.to_string()),
                    Err(fault) => refuse(stream, &asked.place(), &fault, false),
                },
            },
            Err((place, fault)) => refuse(stream, &place, &fault, false),
        }
    }

    fn answer_card(&self, seen: &ReceivedRequest, stream: &mut TcpStream) -> std::io::Result<bool> {
        let path = if self.options.older_card_path { "agent.json" } else { "agent-card.json" };
        if seen.path != format!("/.well-known/{path}") {
            return reply(stream, 404, "text/plain", "", "no card here");
        }
        reply(stream, 200, "application/json", "", &self.card(false).to_string())
    }

    /// Agent card in the format of each supported version, as the official SDK does it.
    fn card(&self, extended: bool) -> Value {
        let shape = |protocol| self.options.card(protocol, &self.base, extended);
        match (self.options.speaks(Protocol::V1), self.options.speaks(Protocol::V03)) {
            (true, true) => {
                let mut card = shape(Protocol::V03);
                for (name, value) in shape(Protocol::V1).as_object().into_iter().flatten() {
                    card[name] = value.clone();
                }
                card
            }
            (false, true) => shape(Protocol::V03),
            _ => shape(Protocol::V1),
        }
    }

    /// Checks that the requested version is supported.
    fn check(&self, seen: &ReceivedRequest, asked: AgentCall) -> Result<AgentCall, (ReplyTarget, Fault)> {
        // A client that names no version is one of 0.3, which had no such header.
        let version = seen.header("a2a-version").filter(|version| !version.is_empty()).unwrap_or("0.3");
        if !self.options.interfaces.contains(&(asked.binding, asked.protocol)) {
            return Err((asked.place(), Fault::MethodNotFound));
        }
        if asked.protocol == Protocol::V1 && version != "1" && !version.starts_with("1.") {
            return Err((asked.place(), Fault::Version(version.to_owned())));
        }
        Ok(asked)
    }

    fn answer_message(
        &self,
        asked: &AgentCall,
        asker: &AgentCaller<'_>,
        stream: &mut TcpStream,
    ) -> std::io::Result<bool> {
        let (place, streams) = (asked.place(), asked.action == Action::Stream);
        let outcome = match take(&self.tasks, asked, asker) {
            Ok(outcome) => outcome,
            Err(fault) => return refuse(stream, &place, &fault, streams),
        };
        let kind = place.media_type();
        match outcome {
            ScriptOutcome::Message(message, wait) => {
                if !wait.is_zero() && !self.tasks.sleep(wait) {
                    return Ok(false);
                }
                let said = place.say(&json!({"message": message}));
                if !streams {
                    return reply(stream, 200, kind, "", &said.to_string());
                }
                let mut pieces = ChunkedReply(stream);
                pieces.begin("text/event-stream")?;
                self.send(&mut pieces, &event(&said, &place))?;
                pieces.end()
            }
            ScriptOutcome::Task { value, said, bare, cut } => {
                let id = value["id"].as_str().unwrap_or_default().to_owned();
                if streams {
                    return self.follow(&place, (!bare).then_some(&value), (&id, said), cut, stream);
                }
                if cut.is_some() {
                    // What is sent whole is cut before it comes.
                    self.tasks.sleep(Duration::from_millis(10));
                    return Ok(false);
                }
                let value = if asked.waits() { rest(&self.tasks, &id, said).unwrap_or(value) } else { value };
                reply(stream, 200, kind, "", &place.say(&json!({"task": value})).to_string())
            }
        }
    }

    fn answer_subscribe(&self, asked: &AgentCall, stream: &mut TcpStream) -> std::io::Result<bool> {
        let (place, id) = (asked.place(), &asked.task);
        let found = self.tasks.lock().tasks.get(id).map(|task| (task.value.clone(), task.said()));
        let Some((value, said)) = found else {
            return refuse(stream, &place, &Fault::TaskNotFound(id.clone()), true);
        };
        let state = value["status"]["state"].as_str().unwrap_or_default();
        let why = format!("Task {id} is in terminal state: {state}");
        match place.protocol {
            Protocol::V1 if is_terminal(state) => refuse(stream, &place, &Fault::Unsupported(why), true),
            // Each version has an error of its own for it, as the official SDKs answer.
            Protocol::V03 if is_terminal(state) => refuse(stream, &place, &Fault::InvalidParams(why), true),
            // Only 1.0 begins with the task as it is.
            Protocol::V1 => self.follow(&place, Some(&value), (id, said), None, stream),
            Protocol::V03 => self.follow(&place, None, (id, said), None, stream),
        }
    }

    fn follow(
        &self,
        place: &ReplyTarget,
        first: Option<&Value>,
        (id, mut said): (&str, usize),
        cut: Option<usize>,
        stream: &mut TcpStream,
    ) -> std::io::Result<bool> {
        let mut pieces = ChunkedReply(stream);
        pieces.begin("text/event-stream")?;
        let mut events = 0;
        if let Some(task) = first {
            self.send(&mut pieces, &event(&place.say(&json!({"task": task})), place))?;
            events += 1;
        }
        while cut.is_none_or(|cut| events < cut) {
            let Some(next) = self.tasks.next(id, said) else { return Ok(false) };
            self.send(&mut pieces, &event(&place.say(&next), place))?;
            (said, events) = (said + 1, events + 1);
            if is_last(&next) {
                return pieces.end();
            }
        }
        Ok(false)
    }

    /// An event, quietly or not.
    fn send(&self, pieces: &mut ChunkedReply<'_>, event: &str) -> std::io::Result<()> {
        if !self.options.noisy_streams {
            return pieces.piece(event);
        }
        // The space after the colon is optional, and lines may end in CRLF (HTML, server-sent events).
        let event = event.replace("data: ", "data:").replace('\n', "\r\n").replace("\r\r", "\r");
        let noise = format!(": grüße\r\n\r\nevent: message\nid: 7\nretry: 10\nunknown\n{event}");
        // Seven bytes cut characters, fields and line ends in the middle.
        noise.as_bytes().chunks(7).try_for_each(|piece| pieces.piece(piece))
    }

    /// Immediate response of a REST call.
    fn answer_rest(&self, asked: &AgentCall) -> Result<Value, Fault> {
        let place = asked.place();
        if asked.action == Action::ExtendedCard {
            return match self.options.extended_card {
                true => Ok(place.wrap(self.card(true))),
                false => Err(Fault::NoExtendedCard),
            };
        }
        if asked.action == Action::List {
            return Ok(place.wrap(listing::list(&self.tasks, &asked.params)));
        }
        if asked.action == Action::Cancel {
            let ended = self.tasks.lock().tasks.get(&asked.task).map(|task| is_terminal(task.state()));
            match ended {
                None => return Err(Fault::TaskNotFound(asked.task.clone())),
                Some(true) => return Err(Fault::NotCancelable),
                Some(false) => self.tasks.status(&asked.task, "CANCELED", None),
            }
        }
        if matches!(asked.action, Action::Get | Action::Cancel) {
            let state = self.tasks.lock();
            let Some(task) = state.tasks.get(&asked.task) else {
                return Err(Fault::TaskNotFound(asked.task.clone()));
            };
            return Ok(place.task(&listing::shorten(&task.value, &asked.params)));
        }
        if !self.options.push {
            return Err(Fault::NoPush);
        }
        listing::push(&self.tasks, asked)
    }
}

/// An event of a stream; 0.3's REST spreads it over several lines, as the official SDK does.
fn event(said: &Value, place: &ReplyTarget) -> String {
    if (place.binding, place.protocol) != (AgentBinding::Rest, Protocol::V03) {
        return format!("data: {said}\n\n");
    }
    let spread = serde_json::to_string_pretty(said).unwrap_or_default();
    spread.lines().map(|line| format!("data: {line}\r\n")).collect::<String>() + "\r\n"
}

/// An error. A stream of 0.3's JSON-RPC has it as an event; all others answer with it instead of a stream.
fn refuse(
    stream: &mut TcpStream,
    place: &ReplyTarget,
    fault: &Fault,
    streams: bool,
) -> std::io::Result<bool> {
    let (status, body) = place.fault(fault);
    if streams && (place.binding, place.protocol) == (AgentBinding::JsonRpc, Protocol::V03) {
        let mut pieces = ChunkedReply(stream);
        pieces.begin("text/event-stream")?;
        pieces.piece(event(&body, place))?;
        return pieces.end();
    }
    reply(stream, status, "application/json", "", &body.to_string())
}
