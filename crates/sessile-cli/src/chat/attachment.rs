//! Files and data that the next message carries.

use sessile_wire::a2a::Part;

use crate::cli::Cx;
use crate::commands::message::{PartKind, part_of};
use crate::error::Failure;

/// Part from a file of this machine, or a link to one.
pub(crate) fn file(cx: &Cx, name: &str) -> Result<Part, Failure> {
    // A shell would expand it, and people type it from habit.
    let home = cx.state.world().home().filter(|_| name.starts_with("~/"));
    let expanded = home.map(|home| home.join(&name[2..]).to_string_lossy().into_owned());
    part_of(cx, PartKind::File, expanded.as_deref().unwrap_or(name))
}

/// Part from JSON: inline, `@FILE`, or the name of a file.
pub(crate) fn data(cx: &Cx, text: &str) -> Result<Part, Failure> {
    part_of(cx, PartKind::Data, text)
}
