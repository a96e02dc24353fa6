//! Scripts of packages and releases, as far as they take no build: what they print, and what they refuse.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use testkit::Home;

use crate::{home, repository};

fn script(name: &str) -> Command {
    let mut command = Command::new(repository::root().join("scripts").join(name));
    command.env_remove("SESSILE_BUILD_COMMIT");
    command
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn git(dir: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let done = Command::new("git").current_dir(dir).args(identity).args(args).output().unwrap();
    stdout(&done).trim().to_owned()
}

/// A copy of the files that name the commit, in a repository of their own.
fn sources(home: &Home) -> std::path::PathBuf {
    for file in ["scripts/build-commit", "packaging/commit", ".gitattributes"] {
        let copy = home.write(format!("sources/{file}"), repository::read(file));
        std::fs::set_permissions(copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let dir = home.path("sources");
    git(&dir, &["init", "--quiet"]);
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "--quiet", "-m", "first"]);
    dir
}

fn build_commit(dir: &Path, args: &[&str]) -> String {
    stdout(&Command::new(dir.join("scripts/build-commit")).args(args).output().unwrap())
}

#[test]
fn commit_of_a_clone_is_named_with_its_changes() {
    let home = home();
    let dir = sources(&home);
    let head = git(&dir, &["rev-parse", "HEAD"]);
    assert_eq!(build_commit(&dir, &[]), format!("{head}\n"));
    assert_eq!(build_commit(&dir, &["--time"]).trim(), git(&dir, &["log", "-1", "--format=%ct"]));
    home.write("sources/new", "not added");
    assert_eq!(build_commit(&dir, &[]), format!("{head}\n"));
    home.write("sources/packaging/commit", "changed");
    assert_eq!(build_commit(&dir, &[]), format!("{head}-dirty\n"));
}

#[test]
fn commit_of_a_source_tarball_is_named_without_git() {
    let home = home();
    let dir = sources(&home);
    let (head, time) = (git(&dir, &["rev-parse", "HEAD"]), git(&dir, &["log", "-1", "--format=%ct"]));
    // Unpacked in another repository, whose commit is not the sources'.
    let tarball = home.path("sources.tar").display().to_string();
    git(&dir, &["archive", "--prefix", "other/unpacked/", "--output", &tarball, "HEAD"]);
    git(&home.path(""), &["init", "--quiet"]);
    let unpacked = home.path("other/unpacked");
    let done = Command::new("tar").current_dir(home.path("")).args(["-xf", &tarball]).output().unwrap();
    stdout(&done);
    assert_eq!(build_commit(&unpacked, &[]), format!("{head}\n"));
    assert_eq!(build_commit(&unpacked, &["--time"]), format!("{time}\n"));
    // Files that were copied out of a clone name none.
    home.write("other/unpacked/packaging/commit", repository::read("packaging/commit"));
    assert_eq!(build_commit(&unpacked, &[]), "");
}

/// A directory of packages as `scripts/package` leaves it, and a cargo that publishes nothing.
fn packages(home: &Home) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    let names = [
        format!("sessile-{version}-x86_64-unknown-linux-gnu.tar.gz"),
        format!("sessile_{version}_amd64.deb"),
        format!("sessile-{version}-1.x86_64.rpm"),
        format!("sessile-{version}-py3-none-any.whl"),
        format!("sessile-{version}.tgz"),
        format!("sessile-linux-x64-{version}.tgz"),
        format!("sessile-{version}-oci-amd64.tar"),
        "sessile.rb".to_owned(),
        "install.sh".to_owned(),
        format!("sessile-{version}-x86_64-unknown-linux-gnu.cdx.json"),
    ];
    for name in &names {
        home.write(format!("target/packages/{name}"), name);
    }
    let cargo =
        home.write("bin/cargo", "#!/bin/sh\nprintf '%s\\n' \"$*\" >> \"$CARGO_TARGET_DIR/cargo.log\"\n");
    std::fs::set_permissions(cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    names.to_vec()
}

fn release(home: &Home, args: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    let mut command = script("release");
    command.args(args).env("PATH", path);
    command.env("CARGO_TARGET_DIR", home.path("target")).output().unwrap()
}

#[test]
fn release_dry_run_makes_notes_and_checksums_and_publishes_none() {
    let home = home();
    let packages = packages(&home);
    let done = release(&home, &["--dry-run", "--quick"]);
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    // 3 in a tree that is not ready: with changes, or after the tag.
    assert!(matches!(done.status.code(), Some(0 | 3)), "{done:?}");
    assert_eq!(done.status.code() == Some(3), told.contains("not ready: "), "{told}");
    for step in ["== version", "== changelog", "== packages", "== crates"] {
        assert!(told.contains(step), "{step} is missing: {told}");
    }
    let notes = home.read("target/packages/RELEASE-NOTES.md");
    assert!(notes.contains("\n- ") && !notes.contains("## Unreleased"), "{notes}");
    let sums = home.read("target/packages/SHA256SUMS");
    for name in packages.iter().map(String::as_str).chain(["RELEASE-NOTES.md"]) {
        assert!(sums.lines().any(|line| line.ends_with(&format!("  {name}"))), "{name}: {sums}");
    }
    let calls = home.read("target/cargo.log");
    assert_eq!(calls.lines().count(), 1, "{calls}");
    assert!(calls.starts_with("publish ") && calls.contains(" --dry-run "), "{calls}");
}

#[test]
fn release_without_dry_run_or_a_package_is_refused() {
    let home = home();
    let packages = packages(&home);
    assert_eq!(release(&home, &[]).status.code(), Some(2));
    assert_eq!(release(&home, &["--publish"]).status.code(), Some(2));
    for name in packages {
        let file = home.path(format!("target/packages/{name}"));
        std::fs::remove_file(&file).unwrap();
        let refused = release(&home, &["--dry-run", "--quick"]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && told.contains("not found"), "{name}: {refused:?}");
        home.write(format!("target/packages/{name}"), "again");
    }
    assert!(!home.path("target/cargo.log").exists());
}

#[test]
fn package_with_a_name_of_another_target_is_refused() {
    let done = script("package").args(["--target", "x86_64-unknown-linux-musl", "deb"]).output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("deb is not built for x86_64-unknown-linux-musl"), "{told}");
    let done = script("package").args(["--target", "x86_64-pc-windows-msvc"]).output().unwrap();
    assert!(String::from_utf8_lossy(&done.stderr).contains("Windows is not supported"), "{done:?}");
}

/// A filter that no test matches is found here, and not after an hour of the long run.
#[test]
fn every_filter_of_the_scripts_selects_a_test() {
    let listed =
        Command::new(std::env::current_exe().unwrap()).args(["--list", "--format", "terse"]).output();
    let listed = stdout(&listed.unwrap());
    let tests: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let mut filters = Vec::new();
    for file in [".config/nextest.toml", "scripts/test", "CONTRIBUTING.md", "docs/release.md"] {
        let text = repository::read(file);
        let parts = text.split("test(").skip(1).filter_map(|part| part.split_once(')'));
        filters.extend(parts.map(|(name, _)| (file, name.to_owned())));
    }
    assert!(filters.len() >= 5, "the search is blind: {filters:?}");
    for (file, name) in filters {
        assert!(tests.iter().any(|test| test.contains(&name)), "{file}: test({name}) selects nothing");
    }
}
