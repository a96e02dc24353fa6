//! A home directory that is removed in the end.

use std::path::{Path, PathBuf};

use crate::{Call, Tty};

/// A throwaway home for one program.
pub struct Home {
    dir: tempfile::TempDir,
    program: PathBuf,
}

impl Home {
    /// A home for the program, usually `env!("CARGO_BIN_EXE_...")`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let dir = tempfile::Builder::new().prefix("home-").tempdir().expect("a temporary directory");
        // Beside it is what goes into the directory of temporary files, so that this is removed in the end too.
        for name in ["home", "tmp"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        Home { dir, program: program.into() }
    }

    /// The directory itself.
    pub fn dir(&self) -> PathBuf {
        // Temporary directories may lie behind links, and programs print real paths.
        self.dir.path().join("home").canonicalize().expect("the home exists")
    }

    /// A path in it.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.dir().join(relative)
    }

    /// Makes a directory in it that is closed to other users, as a runtime directory must be.
    pub fn private_dir(&self, relative: impl AsRef<Path>) -> PathBuf {
        use std::os::unix::fs::DirBuilderExt;
        let path = self.path(relative);
        std::fs::DirBuilder::new().mode(0o700).create(&path).expect("a directory");
        path
    }

    /// Writes a file in it, with the directories above.
    pub fn write(&self, relative: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("the directories above");
        std::fs::write(&path, text).expect("the file");
        path
    }

    /// The same for a file that only its owner can read.
    pub fn write_private(&self, relative: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(relative, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
        path
    }

    /// The text of a file in it.
    pub fn read(&self, relative: impl AsRef<Path>) -> String {
        let path = self.path(relative);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Files of people: all but the program's own state, whose bytes change without a change of content.
    pub fn tree_of_people(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let own = self.path(".local");
        self.tree().into_iter().filter(|(path, _)| !path.starts_with(&own)).collect()
    }

    /// Everything below, with its content if it has one, to compare before and after.
    pub fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut dirs = vec![self.dir()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).expect("a directory") {
                let path = entry.expect("an entry").path();
                let kind = path.symlink_metadata().expect("an entry").file_type();
                let content = if kind.is_file() {
                    std::fs::read(&path).unwrap_or_default()
                } else if kind.is_symlink() {
                    std::fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
                } else {
                    // Reading a pipe would wait for a writer.
                    format!("{kind:?}").into_bytes()
                };
                if kind.is_dir() {
                    dirs.push(path.clone());
                }
                files.push((path, content));
            }
        }
        // Two trees are compared entry by entry.
        files.sort();
        files
    }

    /// A call of the program with these arguments, not yet made.
    pub fn call(&self, args: &[&str]) -> Call {
        Call::new(&self.program, &self.dir(), args)
    }

    /// A call of another program, which the machine must have.
    #[track_caller]
    pub fn tool(&self, name: &str, args: &[&str]) -> Call {
        Call::new(&crate::require_tool(name), &self.dir(), args).with_tools()
    }

    /// The program on a terminal of its own.
    pub fn tty(&self, args: &[&str]) -> Tty {
        self.call(args).tty()
    }

    /// A shell on a terminal of its own, in which the program is found by its name. It is typed at with
    /// [`Tty::run`].
    pub fn shell(&self) -> Tty {
        let dir = self.program.parent().expect("a directory").display();
        // Not an interactive one: that would ignore the signal that ends it.
        let read = "while IFS= read -r line; do eval \"$line\"; done";
        let mut shell = Call::new(Path::new("/bin/bash"), &self.dir(), &["-c", read])
            .env("PATH", format!("{dir}:/usr/local/bin:/usr/bin:/bin"))
            .tty();
        shell.run("stty -echo");
        shell
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }
}
