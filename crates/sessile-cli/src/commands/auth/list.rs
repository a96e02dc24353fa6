//! `sessile auth list`.

use sessile::text::shown;

use super::{CredentialView, end_of};
use crate::cli::Cx;
use crate::commands::page::{Page, WideArgs};
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::vault_unlock::with_unlocked_vault;

/// List the credentials, without their secrets
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth list" "sessile auth list --expired --output json"))]
pub struct Args {
    /// List only expired credentials that cannot be renewed
    #[arg(long)]
    expired: bool,

    #[command(flatten)]
    page: Page,

    #[command(flatten)]
    wide: WideArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let now = cx.state.world().now();
    let all = with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.list())?;
    let wanted = all.iter().map(|one| &one.about).filter(|about| !args.expired || !about.is_valid(now));
    let shown_ones = args.page.of(wanted.collect(), |about| about.name.to_string());
    let views: Vec<CredentialView<'_>> =
        shown_ones.iter().map(|about| CredentialView::new(&cx.state, about)).collect();
    cx.out.list(&views, || {
        if shown_ones.is_empty() {
            return "no credentials found\n".to_owned();
        }
        let mut table = Table::new(&["NAME", "KIND", "ACCOUNT", "EXPIRES", "SITES"]);
        for about in &shown_ones {
            let sites: Vec<String> = about.sites.iter().map(ToString::to_string).collect();
            let tone = (!about.is_valid(now)).then_some(Tone::Warning);
            table.row(
                &[
                    about.name.to_string(),
                    about.kind.as_str().to_owned(),
                    shown(about.account.as_deref().unwrap_or("-")),
                    end_of(&cx.state, about),
                    if sites.is_empty() { "-".to_owned() } else { shown(sites.join(" ")) },
                ],
                tone,
            );
        }
        table.render_fitted(&cx.out, args.wide.wide)
    })
}
