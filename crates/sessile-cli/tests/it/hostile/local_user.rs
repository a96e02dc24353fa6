//! Other local users: shared runtime directories, links and files that they own.

mod projects;
mod state_directory;

mod service_files {
    //! Files of the service in a directory that all users can write.

    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::super::system::UnprivilegedUser;

    const USER: u32 = 65_534;
    const OTHER: u32 = 65_533;

    #[test]
    fn link_of_another_user_to_a_store_is_refused() {
        let user = UnprivilegedUser::new(USER);
        let store = user.home().path("service.db");
        let list = |path: &std::path::Path| {
            user.call(&["user", "list", "--store", path.to_str().unwrap(), "-ojson"]).run()
        };
        user.call(&["user", "add", "ann", "--store", store.to_str().unwrap()]).ok();
        let shared = tempfile::tempdir().unwrap();
        std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let link = shared.path().join("service.db");
        symlink(&store, &link).unwrap();
        // Only root can; the test fails where it is run by anyone else.
        lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
        let refused = list(&link);
        assert_eq!(refused.code(), "FILE_WRITABLE", "{}", refused.told());
        lchown(&link, Some(USER), Some(USER)).unwrap();
        list(&link).exit(0);
    }
}

mod runtime_directory {
    //! A runtime directory that other users can get at.

    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use testkit::Call;

    use super::super::clean;
    use super::super::system::UnprivilegedUser;

    const USER: u32 = 65_534;
    const OTHER: u32 = 65_533;

    fn make_dir(path: &Path, mode: u32, uid: u32) {
        std::fs::create_dir(path).unwrap();
        set_owner(path, mode, uid);
    }

    fn set_owner(path: &Path, mode: u32, uid: u32) {
        // Only root can; the tests that need another user fail where they are run by anyone else.
        std::os::unix::fs::lchown(path, Some(uid), Some(uid)).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A user whose vault has a passphrase, in the file `words`.
    fn user_with_passphrase() -> UnprivilegedUser {
        let user = UnprivilegedUser::new(USER);
        user.home().write("words", "correct horse battery\n");
        user.own();
        user.call(&["auth", "set", "bot", "--secret-stdin"]).stdin("hunter2").ok();
        user.call(&["auth", "rekey", "--to", "passphrase", "--passphrase-file", "words"]).ok();
        user
    }

    fn unlock(user: &UnprivilegedUser, runtime: &Path) -> Call {
        user.call(&["auth", "unlock", "--passphrase-file", "words", "-ojson"]).env("XDG_RUNTIME_DIR", runtime)
    }

    /// The name of the file with the cached key, as a private runtime directory has it.
    fn name_of_key(user: &UnprivilegedUser) -> String {
        let runtime = user.home().path("private");
        make_dir(&runtime, 0o700, USER);
        unlock(user, &runtime).ok();
        let mut names = std::fs::read_dir(runtime.join("sessile")).unwrap();
        let name = names.next().unwrap().unwrap();
        assert_eq!(name.metadata().unwrap().mode() & 0o7777, 0o600);
        let listed = user.call(&["auth", "list", "-ojson"]).env("XDG_RUNTIME_DIR", &runtime);
        assert_eq!(listed.ok().json().as_array().unwrap().len(), 1);
        name.file_name().into_string().unwrap()
    }

    #[track_caller]
    fn is_refused(user: &UnprivilegedUser, runtime: &Path) {
        let before = tree(runtime);
        let done = clean(unlock(user, runtime).run().exit(4));
        assert_eq!(done.code(), "NO_HOME", "{}", done.told());
        assert!(done.stderr().contains("runtime directory"), "{}", done.told());
        assert_eq!(tree(runtime), before, "nothing is written there");
        let locked = user.call(&["auth", "list", "-ojson"]).env("XDG_RUNTIME_DIR", runtime);
        assert_eq!(clean(locked.run().exit(8)).code(), "VAULT_LOCKED");
    }

    fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            found.push((entry.path(), std::fs::read(entry.path()).unwrap_or_default()));
            if entry.file_type().unwrap().is_dir() {
                found.extend(tree(&entry.path()));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn directory_prepared_by_another_user_gets_no_vault_key() {
        let user = user_with_passphrase();
        let key = name_of_key(&user);
        let shared = user.home().path("shared");
        make_dir(&shared, 0o1777, 0);
        make_dir(&shared.join("sessile"), 0o777, OTHER);
        std::fs::write(shared.join("sessile").join(&key), "").unwrap();
        set_owner(&shared.join("sessile").join(&key), 0o666, OTHER);
        is_refused(&user, &shared);
        // The same behind the variable that names it directly.
        let call = || user.call(&["auth", "unlock", "--passphrase-file", "words", "-ojson"]);
        let done = clean(call().env("SESSILE_RUNTIME_DIR", shared.join("sessile")).run().exit(4));
        assert_eq!(done.code(), "NO_HOME", "{}", done.told());
        let done = clean(call().env("SESSILE_RUNTIME_DIR", shared.join("sessile/below")).run().exit(4));
        assert_eq!(done.code(), "NO_HOME", "{}", done.told());
    }

    #[test]
    fn directory_that_is_shared_or_open_gets_no_vault_key() {
        let user = user_with_passphrase();
        for (name, mode, owner) in
            [("open", 0o755, USER), ("group", 0o750, USER), ("sticky", 0o1777, 0), ("other", 0o777, OTHER)]
        {
            let runtime = user.home().path(name);
            make_dir(&runtime, mode, owner);
            is_refused(&user, &runtime);
        }
        let target = user.home().path("target");
        make_dir(&target, 0o700, USER);
        symlink(&target, user.home().path("link")).unwrap();
        is_refused(&user, &user.home().path("link"));
    }

    #[test]
    fn planted_key_file_is_replaced_and_not_written_through() {
        let user = user_with_passphrase();
        let key = name_of_key(&user);
        let path = user.home().path("private/sessile").join(&key);
        std::fs::remove_file(&path).unwrap();
        let victim = user.home().write("victim", "mine");
        symlink(&victim, &path).unwrap();
        unlock(&user, &user.home().path("private")).ok();
        assert_eq!(user.home().read("victim"), "mine");
        assert_eq!(path.symlink_metadata().unwrap().mode() & 0o170_777, 0o100_600);
        // One that others could read, or that they made, counts for nothing.
        for (mode, owner) in [(0o644, USER), (0o600, OTHER)] {
            unlock(&user, &user.home().path("private")).ok();
            set_owner(&path, mode, owner);
            let listed = user.call(&["auth", "list", "-ojson"]);
            let listed = clean(listed.env("XDG_RUNTIME_DIR", user.home().path("private")).run().exit(8));
            assert_eq!(listed.code(), "VAULT_LOCKED");
            assert!(path.symlink_metadata().is_err());
        }
        unlock(&user, &user.home().path("private")).ok();
        assert_eq!(path.symlink_metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn sockets_move_to_a_private_directory() {
        let user = UnprivilegedUser::new(USER);
        let shared = user.home().path("shared");
        make_dir(&shared, 0o1777, 0);
        make_dir(&shared.join("sessile"), 0o777, OTHER);
        let temporary = user.home().path("tmp");
        make_dir(&temporary, 0o1777, 0);
        let run = |words: &[&str]| {
            let call = user.call(&["run", "--session", "s1", "--"]).args(words);
            call.env("XDG_RUNTIME_DIR", &shared).env("TMPDIR", "/tmp")
        };
        let sockets = clean(run(&["printenv", "TMUX_TMPDIR"]).ok()).stdout();
        let sockets = Path::new(sockets.trim());
        assert!(!sockets.starts_with(&shared), "{}", sockets.display());
        let found = sockets.symlink_metadata().unwrap();
        assert_eq!((found.mode() & 0o7777, found.uid()), (0o700, USER));
        assert_eq!(tree(&shared.join("sessile")), []);
        clean(run(&["printenv", "SESSILE_RUNTIME_DIR"]).run().exit(1));
        user.call(&["session", "stop", "s1"]).env("XDG_RUNTIME_DIR", &shared).ok();
        assert!(!sockets.exists());
    }

    #[test]
    fn doctor_names_a_runtime_directory_that_is_open() {
        let user = UnprivilegedUser::new(USER);
        let runtime = user.home().path("open");
        make_dir(&runtime, 0o755, USER);
        let done = user.call(&["doctor"]).env("XDG_RUNTIME_DIR", &runtime).run();
        assert!(done.stdout().contains("is open to other users"), "{}", done.told());
        assert!(done.stdout().contains("chmod 700"), "{}", done.told());
    }

    #[test]
    fn bus_in_a_shared_directory_gets_no_request() {
        let user = UnprivilegedUser::new(USER);
        let shared = user.home().path("shared");
        make_dir(&shared, 0o1777, 0);
        let bus = std::os::unix::net::UnixListener::bind(shared.join("bus")).unwrap();
        bus.set_nonblocking(true).unwrap();
        std::fs::set_permissions(shared.join("bus"), Permissions::from_mode(0o777)).unwrap();
        let set = user.call(&["auth", "set", "bot", "--secret-stdin"]).stdin("hunter2");
        clean(set.env("XDG_RUNTIME_DIR", &shared).ok());
        assert!(bus.accept().is_err(), "no process connected to the bus");
    }
}

mod sockets {
    //! What the link to a session's sockets leads to when someone has changed it.

    use std::os::unix::fs::{DirBuilderExt, symlink};

    use super::super::clean;
    use crate::{home, room, shown};

    #[test]
    fn changed_link_to_the_sockets_removes_nothing() {
        let home = home();
        let runtime = home.private_dir("run");
        let call = |args: &[&str]| home.call(args).env("XDG_RUNTIME_DIR", &runtime);
        home.write("work/file", "mine");
        for target in ["work", ".", "named"] {
            call(&["run", "--session", "s1", "--new", "--", "true"]).ok();
            let (link, id) = (room(&home, "s1").join("sockets"), shown(&home, "s1")["id"].to_string());
            let real = link.read_link().unwrap();
            let target = match target {
                // Named like the session's, but not made for it.
                "named" => {
                    let dir = home.path("else").join(id.trim_matches('"').split_at(24).1);
                    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).unwrap();
                    std::fs::write(dir.join("file"), "mine").unwrap();
                    dir
                }
                name => home.path(name),
            };
            std::fs::remove_file(&link).unwrap();
            symlink(&target, &link).unwrap();
            clean(call(&["session", "stop", "s1"]).ok());
            assert!(target.is_dir() && home.path("work/file").exists(), "{}", target.display());
            assert!(std::fs::read_dir(&target).unwrap().next().is_some());
            std::fs::remove_dir_all(real).unwrap();
        }
    }

    #[test]
    fn link_in_the_place_of_the_sockets_is_not_removed_through() {
        let home = home();
        let runtime = home.private_dir("run");
        let call = |args: &[&str]| home.call(args).env("XDG_RUNTIME_DIR", &runtime);
        home.write("work/file", "mine");
        call(&["run", "--session", "s1", "--", "true"]).ok();
        let sockets = room(&home, "s1").join("sockets").read_link().unwrap();
        std::fs::rename(&sockets, home.path("aside")).unwrap();
        std::fs::copy(home.path("aside/.session"), home.path("work/.session")).unwrap();
        symlink(home.path("work"), &sockets).unwrap();
        clean(call(&["session", "stop", "s1"]).ok());
        assert_eq!(home.read("work/file"), "mine");
    }
}
