//! MCP server on standard input and output: the program's commands as tools for agents.
//!
//! The server keeps no state but the calls that it waits for. A tool call is a call of this program in a process of its
//! own, with JSON as its output. So a tool does what its command does, several servers and commands share one state, a
//! call that hangs or dies affects no other, cancelling a call ends a process, and a handle outlives its server.
//!
//! | module | content |
//! |---|---|
//! | `tools`, `tool` | the one table; an entry: command, arguments and where each goes, result, time limit |
//! | `arguments` | arguments of a tool to words of a call |
//! | `invocation`, `capture`, `progress` | the call in its process; bounded output; progress notifications |
//! | `reply` | output of the call to a result or an error |
//! | `approval`, `state_access` | question to the person behind the client; access to the state for it |
//! | `server` | the tools on offer, and the path of a call |
//! | `transport`, `lines`, `batches` | messages; lines in and out, each on its own thread; several messages in one line |
//! | `reference` | the table for `docs/reference/mcp-tools.md` |
//!
//! The path of a call:
//!
//! 1. `lines` reads a line and `Stdio` parses it. Input that is not JSON-RPC gets an error and ends nothing.
//! 2. `Server::find` looks the tool up among those on offer.
//! 3. `arguments::invocation` builds the words: the command, `--output=json --no-input`, flags joined to their values,
//!    the server's own `--session` and `--context` where the arguments have none, and everything else behind `--`. Text
//!    goes through standard input. An unknown argument is refused.
//! 4. `Invocation::make`, limited to 32 calls at once, starts this program in its own process group and captures its
//!    bounded output. The call ends when the process exits, at the time limit, or on cancellation.
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
//! - A process per call: a command may use its process as it likes, none of it is async, and its errors, locks and
//!   crashes are tested as they are. A call costs a few milliseconds, a model's turn seconds.
//! - Errors as text: clients validate structured content against the schema of the result, also for an error.
//! - Short descriptions: a model reads the whole list in every conversation. A test keeps it under 12 kB.
//! - Threads for input and output: a blocking read of standard input cannot be cancelled, and a client that does not
//!   read must not delay the calls.

mod approval;
mod arguments;
mod batches;
mod capture;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod invocation;
mod lines;
mod progress;
mod reference;
mod reply;
mod server;
mod state_access;
mod tool;
mod tools;
mod transport;

pub use reference::described;
pub(crate) use server::{ToolAccess, serve};
