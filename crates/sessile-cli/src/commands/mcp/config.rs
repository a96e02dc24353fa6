//! `sessile mcp config`.

use clap::builder::PossibleValue;
use serde_json::{Value, json};
use sessile::Error;
use sessile::error::UsageError;
use sessile::settings::Layer;

use super::client::{Client, ServerCommand, own_program};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::http::HttpAddress;
use crate::output::Table;
use crate::temporary_home::has_program;

/// Print an MCP client's configuration for this server or a service
///
/// Prints the snippet on standard output, and the file that it belongs to on standard error. --session, --context,
/// --allow-run and --read-only become part of the snippet. With --url the client connects to a service of `serve` instead.
/// The snippet does not contain the token: the client reads it from SESSILE_TOKEN or prompts for it. Without --client,
/// lists the clients and the file that each reads. The command writes no file.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile mcp config"
    "sessile mcp config --client cursor > .cursor/mcp.json"
    "sessile mcp config --client claude --session web --context staging"
    "sessile mcp config --client claude-desktop --absolute --read-only"
    "sessile mcp config --client codex --url https://sessions.example"
))]
pub struct Args {
    /// Print the configuration of this client
    #[arg(long, value_name = "CLIENT", value_parser = clients())]
    client: Option<String>,

    /// Also offer the tool that runs commands
    #[arg(long)]
    allow_run: bool,

    /// Offer only tools that change nothing
    #[arg(long, conflicts_with = "allow_run")]
    read_only: bool,

    /// Write this program's full path, for clients with another search path
    #[arg(long)]
    absolute: bool,

    /// Connect to the session service at this address, instead of starting a server
    #[arg(long, value_name = "URL", requires = "client", conflicts_with_all = ["allow_run", "read_only", "absolute"])]
    url: Option<String>,
}

fn clients() -> Vec<PossibleValue> {
    Client::all().iter().map(|client| PossibleValue::new(&client.name).help(&client.about)).collect()
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    match Client::all().iter().find(|client| Some(&client.name) == args.client.as_ref()) {
        Some(client) => match &args.url {
            Some(url) => print_service(client, url, cx),
            None => print(client, args, cx),
        },
        None => list(cx),
    }
}

fn list(cx: &Cx) -> Outcome {
    let items: Vec<Value> = Client::all()
        .iter()
        .map(|client| {
            json!({
                "client": client.name,
                "about": client.about,
                "format": client.format,
                "path": client.path,
                "user_path": client.user,
            })
        })
        .collect();
    cx.out.list(&items, || {
        let mut table = Table::new(&["CLIENT", "FOR", "FILE"]);
        for client in Client::all() {
            for path in std::iter::once(&client.path).chain(&client.user) {
                let scope = if path.starts_with('~') { "all projects" } else { "this project" };
                table.row(&[client.name.as_str(), scope, path], None);
            }
        }
        table.render_wrapped(&cx.out)
    })
}

fn print(client: &Client, args: &Args, cx: &Cx) -> Outcome {
    let started = ServerCommand { command: command(args, cx)?, args: arguments(args, cx)? };
    let snippet = client.snippet(&started);
    let result = json!({
        "client": client.name,
        "format": client.format,
        "path": client.path,
        "snippet": snippet,
        "command": started.command,
        "args": started.args,
    });
    cx.out.result(&result, || snippet.clone())?;
    say_where(client, cx);
    if let Some(add) = client.add(&started) {
        cx.out.note(&format!("or: {add}"));
    }
    Ok(())
}

fn say_where(client: &Client, cx: &Cx) {
    let user = client.user.as_ref().map_or_else(String::new, |path| format!(" or, for all projects, {path}"));
    cx.out.note(&format!(
        "put the snippet into {}{user}; if the file exists, add the entry to it",
        client.path
    ));
}

/// Prints the configuration for a service, without the token, which decides the user.
fn print_service(client: &Client, url: &str, cx: &Cx) -> Outcome {
    let said = cx.state.args();
    let has_session = said.session.is_some() && cx.state.session_origin().layer == Layer::Flag;
    if has_session || said.context.is_some() {
        let why =
            "--session and --context are for a server on this machine: a service has sessions of its own";
        return Err(UsageError::Arguments(why.to_owned()).into());
    }
    let address =
        HttpAddress::parse(url).map_err(|error| UsageError::Arguments(format!("--url: {error}")))?;
    // `/mcp` is appended below, so nothing may follow the path.
    if address.uri().query().is_some() {
        return Err(UsageError::Arguments("--url: the address of a service has no query".to_owned()).into());
    }
    let url = address.to_string();
    let url = url.trim_end_matches('/');
    let url = if url.ends_with("/mcp") { url.to_owned() } else { format!("{url}/mcp") };
    let Some(snippet) = client.for_service(&url) else {
        let able: Vec<&str> = Client::all()
            .iter()
            .filter(|client| client.for_service(&url).is_some())
            .map(|client| client.name.as_str())
            .collect();
        let why =
            format!("{} supports a token only in its file; --url supports {}", client.about, able.join(", "));
        return Err(UsageError::Arguments(why).into());
    };
    let result = json!({
        "client": client.name,
        "format": client.format,
        "path": client.path,
        "snippet": snippet,
        "url": url,
    });
    cx.out.result(&result, || snippet.clone())?;
    say_where(client, cx);
    cx.out.note("the client reads the token from SESSILE_TOKEN, or prompts for it");
    Ok(())
}

/// The program, as the client is to start it.
fn command(args: &Args, cx: &Cx) -> Result<String, Error> {
    let name = cx.state.app().name();
    if !args.absolute {
        let path = cx.state.world().variable("PATH").unwrap_or_default();
        // Clients that are started by the desktop have another PATH than this shell.
        if !has_program(path, name) {
            cx.out.note(&format!("{name} is not on the PATH here: --absolute names it by its path"));
        }
        return Ok(name.to_owned());
    }
    own_program(&cx.state)
}

/// Arguments of the server. A session or context from a variable is left out, because the client may have another.
fn arguments(args: &Args, cx: &Cx) -> Result<Vec<String>, Error> {
    let mut words = vec!["mcp".to_owned()];
    let said = cx.state.args();
    if let Some(session) = said.session.as_ref().filter(|_| cx.state.session_origin().layer == Layer::Flag) {
        // A session that is not there yet is started later; a name that cannot be one never is.
        cx.state.session()?;
        words.extend(["--session".to_owned(), session.clone()]);
    }
    if let Some(context) = &said.context {
        // Its guard is asked when it is used, not now.
        if let Some(selected) = cx.state.selected()? {
            cx.state.contexts().get(&selected.name)?;
        }
        words.extend(["--context".to_owned(), context.clone()]);
    }
    for (flag, wanted) in [("--allow-run", args.allow_run), ("--read-only", args.read_only)] {
        if wanted {
            words.push(flag.to_owned());
        }
    }
    Ok(words)
}
