//! `sessile lock list`.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use sessile::context::approval::time;
use sessile::lock::{LockHolder, LockView};
use sessile_wire::service::{HeldLock, ServiceLock};

use super::locks_in;
use crate::cli::Cx;
use crate::commands::page::Page;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::output::Table;
use crate::remote::{ServerArgs, ServiceClient, holder_of};

/// List the locks that are held
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock list" "sessile lock list --output json"))]
pub struct Args {
    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// A lock that is held, as it is listed.
#[derive(Debug, Serialize)]
struct LockRow {
    name: String,
    token: i64,
    holder: HolderRow,
    since: String,
    expires_at: Option<String>,
    waiting: i64,
}

/// Holder of a listed lock.
#[derive(Debug)]
struct HolderRow {
    holder: LockHolder,
    /// Whether a service reported the holder: of its process only the pid is known then.
    is_remote: bool,
}

impl Serialize for HolderRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LockHolder { user, host, process, session, purpose } = &self.holder;
        if !self.is_remote {
            return self.holder.serialize(serializer);
        }
        let mut row = serializer.serialize_struct("LockHolder", 5)?;
        row.serialize_field("user", user)?;
        row.serialize_field("host", host)?;
        row.serialize_field("process", &process.as_ref().map(|process| RemoteProcess::new(process.pid)))?;
        row.serialize_field("session", session)?;
        row.serialize_field("purpose", purpose)?;
        row.end()
    }
}

/// Process on another machine: what tells it apart from others with its pid is known there alone.
#[derive(Debug, Serialize)]
struct RemoteProcess {
    pid: i32,
    started: Option<u64>,
    boot: Option<String>,
}

impl RemoteProcess {
    fn new(pid: i32) -> Self {
        RemoteProcess { pid, started: None, boot: None }
    }
}

impl From<LockView> for LockRow {
    fn from(lock: LockView) -> Self {
        LockRow {
            name: lock.name,
            token: lock.token,
            holder: HolderRow { holder: lock.holder, is_remote: false },
            since: lock.since,
            expires_at: lock.expires_at,
            waiting: i64::try_from(lock.waiting).unwrap_or(i64::MAX),
        }
    }
}

impl From<HeldLock> for LockRow {
    fn from(held: HeldLock) -> Self {
        let holder = HolderRow { holder: holder_of(&held), is_remote: true };
        let ServiceLock { name, ticket } = held.lock;
        LockRow {
            name,
            token: ticket.token,
            holder,
            since: time(ticket.asked_ms),
            expires_at: Some(time(ticket.expires_ms)),
            waiting: held.waiting,
        }
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let rows: Vec<LockRow> = match ServiceClient::of(cx, &cx.state)? {
        Some(server) => server.locks()?.into_iter().map(LockRow::from).collect(),
        None => {
            let store = cx.state.fresh_store()?;
            let found = store.map(|store| locks_in(&cx.state, store)?.list().map_err(Failure::from));
            found.transpose()?.unwrap_or_default().into_iter().map(LockRow::from).collect()
        }
    };
    let rows = args.page.of(rows, |row| row.name.clone());
    cx.out.list(&rows, || {
        if rows.is_empty() {
            return "no lock is held\n".to_owned();
        }
        let mut table = Table::new(&["LOCK", "TOKEN", "HOLDER", "SINCE", "UNTIL", "WAITING"]);
        for row in &rows {
            let cells = [
                row.name.clone(),
                row.token.to_string(),
                row.holder.holder.short(),
                row.since.clone(),
                row.expires_at.clone().unwrap_or_else(|| "its command ends".to_owned()),
                row.waiting.to_string(),
            ];
            table.row(&cells, None);
        }
        table.render(&cx.out)
    })
}
