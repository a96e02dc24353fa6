//! Consent to run a command: without `--allow-run` the server asks the person behind the client.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolResponse, JsonObject};
use serde_json::Value;
use sessile::Code;
use sessile::text::{quoted, shell_quoted, shortened, shown};

use super::questions::{Answer, Asker, Question};
use super::reply::refused;

/// Choice for this command alone.
const ONCE: &str = "once";

/// Choices of the person: this command, or every command of this client for a time.
const CHOICES: [&str; 3] = [ONCE, "10m", "1h"];

/// Clients whose commands a person has allowed for a time. They end with the server.
#[derive(Debug, Default)]
pub(super) struct RunGrants(Mutex<HashMap<String, Instant>>);

impl RunGrants {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allows(&self, client: &str) -> bool {
        self.lock().get(client).is_some_and(|end| Instant::now() < *end)
    }

    fn allow(&self, client: &str, time: Duration) {
        let mut grants = self.lock();
        grants.retain(|_, end| Instant::now() < *end);
        grants.insert(client.to_owned(), Instant::now() + time);
    }
}

/// Asks the person to allow a command, unless they have. The response of the call if it is not to run.
pub(super) async fn ask(
    grants: &RunGrants,
    asker: &mut Asker<'_>,
    client: &str,
    arguments: &JsonObject,
) -> Result<(), CallToolResponse> {
    if grants.allows(client) || asker.is_run_allowed() {
        return Ok(());
    }
    let question = Question {
        key: "run".to_owned(),
        message: format!(
            "{} wants to run{}: {}. Allow it?",
            shown(shortened(client, 60)),
            place(arguments),
            shown(shortened(&command_line(arguments), 1500))
        ),
        field: "allow",
        title: "Allow",
        choices: &CHOICES,
        condition: String::new(),
        is_run_allowed: false,
    };
    match asker.ask(&question).await {
        Answer::Chosen(ONCE) => Ok(()),
        Answer::Chosen(time) => {
            grants.allow(client, sessile::duration::parse(time).unwrap_or_default());
            Ok(())
        }
        Answer::Declined => Err(refused(Code::Declined, "the person denied the command").into()),
        Answer::Unable => Err(refused(
            Code::ConfirmationRequired,
            "running commands requires a person's consent, and this client cannot ask for it (elicitation); start the \
             server with --allow-run",
        )
        .into()),
        Answer::Ask(question) => Err((*question).into()),
    }
}

/// Session, context and directory that a call names.
fn place(arguments: &JsonObject) -> String {
    let named = |name: &str| {
        let value = arguments.get(name).and_then(Value::as_str)?;
        Some(format!(" in {name} {}", quoted(shortened(value, 60))))
    };
    ["session", "context", "directory"].into_iter().filter_map(named).collect()
}

/// Words of the command as a shell would need them, so that the person sees where each ends.
fn command_line(arguments: &JsonObject) -> String {
    let words = arguments.get("command").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words: Vec<String> = words.iter().filter_map(Value::as_str).map(shell_quoted).collect();
    let input = arguments.get("stdin").and_then(Value::as_str).filter(|text| !text.is_empty());
    let input =
        input.map_or_else(String::new, |text| format!(" (standard input: {})", quoted(shortened(text, 200))));
    words.join(" ") + &input
}
