//! `sessile config path`.

use serde_json::json;
use sessile::call::ConfigSource;
use sessile::config::write::file;
use sessile::settings::Layer;
use sessile::text::shown;

use super::ScopeArgs;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};

/// Print the paths of the settings files
///
/// With a flag, prints only the path of that file. Otherwise lists all files, the highest precedence first.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile config path" "sessile config path --global"))]
pub struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(scope) = args.scope.scope() {
        let (layer, path) = file(&cx.state, Some(scope))?;
        let json = json!({ "layer": layer, "path": path.to_string_lossy(), "exists": path.exists() });
        return cx.out.result(&json, || format!("{}\n", shown(path.display())));
    }
    let mut files = Vec::new();
    match cx.state.source() {
        ConfigSource::Nothing => {}
        ConfigSource::File(file) => files.push((Layer::File, file.clone())),
        ConfigSource::Usual => {
            if let Some(project) = cx.state.project() {
                files.push((Layer::Directory, project.local_settings()));
                files.push((Layer::Directory, project.settings()));
            }
            files.extend(cx.state.dirs().user_settings().map(|path| (Layer::User, path)));
            files.push((Layer::System, cx.state.dirs().system_settings()));
        }
    }
    let mut table = Table::new(&["LAYER", "EXISTS", "PATH"]);
    let mut items = Vec::new();
    for (layer, path) in &files {
        let exists = path.exists();
        let word = if exists { "yes" } else { "no" };
        table.row(&[layer.as_str(), word, &path.to_string_lossy()], (!exists).then_some(Tone::Faint));
        items.push(json!({ "layer": layer, "path": path.to_string_lossy(), "exists": exists }));
    }
    cx.out.list(&items, || table.render(&cx.out))
}
