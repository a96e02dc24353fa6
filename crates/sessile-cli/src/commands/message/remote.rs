//! Messages to a session of a service, whose upstream replies.

use sessile::text::shown_lines;
use sessile_wire::service::ReplyDelta;

use super::compose::ComposeArgs;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::remote::{Remote, reply};
use crate::view::EventView;

pub(super) fn run(compose: &ComposeArgs, cx: &Cx, remote: &Remote<'_>, streams: bool) -> Outcome {
    let server = &remote.server;
    let text = compose.text_for_server(cx, server.url())?;
    let (session, is_new) =
        remote.require_or_start("talking in it", || cx.state.session_lifetime(None, None))?;
    remote.require_context_of(&session)?;
    let mut is_line_open = false;
    let mut on_piece = |piece: &str| {
        is_line_open = !piece.ends_with('\n');
        let delta = ReplyDelta { content: piece.to_owned() };
        cx.out.event(&EventView::from(&delta), piece, true);
    };
    let wait = (!streams).then(|| cx.out.slow_step(|| format!("waiting for {}", server.url())));
    let on_piece: Option<&mut dyn FnMut(&str)> = if streams { Some(&mut on_piece) } else { None };
    let replied = reply(server, &session, &text, compose.reach.timeout(), on_piece);
    // Also after a failure: the error must not stand behind the progress line.
    drop(wait);
    if is_line_open {
        cx.out.end_line();
    }
    let replied = replied.inspect_err(|failure| {
        if is_new {
            remote.end_unused(&session, failure);
        }
    })?;
    cx.changed_at(&remote.place(&session), &replied, || match streams {
        true => String::new(),
        false => format!("{}\n", shown_lines(&replied.text)),
    })
}
