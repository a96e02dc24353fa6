//! `sessile user audit`.

use serde_json::{Value, json};
use sessile::text::shown;
use sessile_server::users;

use super::{at, with_store};
use crate::cli::Cx;
use crate::commands::page::WideArgs;
use crate::commands::service_store::StoreArgs;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::Table;

/// Show the service's audit log, newest entries first
///
/// Lists changes of users, refused requests, and changes made with `user`. Reads are recorded only if the service runs with
/// --audit-reads.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile user audit"
    "sessile user audit ann --limit 20 --output json"
))]
pub struct Args {
    /// List only entries of this user
    #[arg(value_name = "USER")]
    user: Option<String>,

    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,

    /// Continue after this id, the last one of the previous page
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let all = with_store(cx, &args.store, async |db| {
        let (before, limit) = (args.cursor.as_deref(), i64::from(args.limit));
        let user = args.user.as_deref().map(users::existing).transpose()?;
        users::audit(db, user.as_ref(), before, limit).await
    })?;
    let items: Vec<Value> = all
        .iter()
        .map(|(user, access)| {
            json!({
                "id": access.id,
                "at": at(access.at_ms),
                "user": user,
                "action": access.action,
                "session": access.session,
                "subject": access.subject,
                "outcome": access.outcome,
                "token_id": access.token_id,
            })
        })
        .collect();
    cx.out.list(&items, || {
        if all.is_empty() {
            return "no audit entries found\n".to_owned();
        }
        let mut table = Table::new(&["AT", "USER", "ACTION", "SUBJECT", "OUTCOME", "SESSION", "TOKEN", "ID"])
            .with_optional(&["ID", "TOKEN", "SESSION"]);
        for (user, access) in &all {
            let or_dash = |text: &Option<String>| text.as_ref().map_or_else(|| "-".to_owned(), shown);
            let cells = [
                at(access.at_ms),
                shown(user.as_str()),
                shown(&access.action),
                or_dash(&access.subject),
                shown(&access.outcome),
                or_dash(&access.session),
                or_dash(&access.token_id),
                shown(&access.id),
            ];
            table.row(&cells, None);
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}
