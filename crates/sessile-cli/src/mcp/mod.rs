//! MCP server on standard input and output or over HTTP: the program's commands as tools for agents, and its contexts,
//! sessions and conversations as resources.
//!
//! The server keeps no state except running calls, open questions, and consent to run commands. A tool call is a call
//! of this program, with JSON as its output: in a process of its own, or in this one if it only reads. So a tool does
//! what its command does, and several servers and commands share one state. A call that hangs or dies affects no
//! other, cancelling a call ends a process, and a handle outlives its server.
//!
//! | module | content |
//! |---|---|
//! | `tools`, `tool` | the one table; an entry: command, arguments and where each goes, result, time limit |
//! | `arguments` | arguments of a tool to words of a call |
//! | `invocation`, `capture`, `progress` | the call in its process; bounded output; progress notifications |
//! | `in_process`, `lanes` | calls that only read; limits of concurrent calls |
//! | `reply` | output of the call to a result or an error |
//! | `questions`, `approval`, `run_consent`, `state_access` | questions to the person behind the client, each answered once; approvals and consent; access to the state |
//! | `resources`, `uri`, `subscriptions`, `file_changes` | resources, their addresses and their changes |
//! | `prompts`, `instructions` | texts for models |
//! | `server` | offered tools, and the path of a call |
//! | `stdio`, `transport`, `lines`, `batches` | the server on standard streams; messages; lines in and out, each on its own thread; several messages in one line |
//! | `http`, `peer_user` | the server over HTTP; the user at the other end of a connection |
//! | `reference` | the table for `docs/reference/mcp-tools.md` |
//!
//! The path of a call:
//!
//! 1. `lines` reads a line and `Stdio` parses it. Input that is not JSON-RPC gets an error and ends nothing.
//! 2. `Offer::find` looks the tool up among the offered ones.
//! 3. `arguments::invocation` builds the words: the command, `--output=json --no-input`, flags joined to their values,
//!    the server's own `--session` and `--context` where the arguments have none, and everything else behind `--`. Text
//!    goes through standard input. An unknown argument is refused.
//! 4. A command of `run` needs `--allow-run`, or the consent of the person (`run_consent::ask`).
//!    `in_process::read` makes a call that only reads on a blocking thread. `Invocation::make` starts this program in its own
//!    process group and captures its bounded output; the call ends when the process exits, at the time limit, or on
//!    cancellation. Slow and quick calls have separate limits (`lanes`).
//! 5. `reply` takes the JSON on standard output as the result and the line on standard error as the error. The streams
//!    of `run` belong to its command, so `run --report FILE` writes the reason of a failure to that file.
//! 6. After `GUARD_APPROVAL`, and if the client can ask, `approval::ask` asks the person. If they agree, the library
//!    records the approval in this process and the call is made once more.
//!
//! Rules:
//!
//! - Every tool is a command in the effects table. Its annotations, and whether `--read-only` offers it, come from
//!   there.
//! - Input of a client never becomes a flag, and no shell sees it. A tool that ends or deletes something has no default
//!   target.
//! - Standard output carries nothing but JSON-RPC, and the calls do not inherit it.
//! - Output of a command is never parsed as output of Sessile.
//!
//! Reasons:
//!
//! - A process per call that writes: a command may use its process as it likes, none of it is async, and its errors, locks
//!   and crashes are tested as they are. Reading calls use nothing of their process but the `World` that they get, so they
//!   need none of their own, which is most of the time that they take.
//! - An answer of a person is bound to its call by `requestState`, which only this process knows, and counts once: it
//!   opens nothing after a revocation, with other arguments, or in another server.
//! - Errors as text: clients validate structured content against the schema of the result, also for an error.
//! - Short descriptions: a model reads the whole list in every conversation. A test keeps it under 13 kB.
//! - Threads for input and output: a blocking read of standard input cannot be cancelled, and a client that does not
//!   read must not delay the calls.

mod approval;
mod arguments;
mod batches;
mod capture;
mod file_changes;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub(crate) mod http;
mod in_process;
mod instructions;
mod invocation;
mod lanes;
mod lines;
mod peer_user;
mod progress;
mod prompts;
mod questions;
mod reference;
mod reply;
mod resources;
mod run_consent;
mod server;
mod state_access;
mod stdio;
mod subscriptions;
mod tool;
mod tools;
mod transport;
mod uri;

pub use reference::described;
pub(crate) use server::ToolAccess;
pub(crate) use stdio::serve;
