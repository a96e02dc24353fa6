//! Network file systems: locks and shared memory cannot be relied on there.

use std::path::Path;

/// The kind of network file system a path is on, or would be on once it is made.
pub fn network_file_system(path: &Path) -> Option<&'static str> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists())?;
    network_kind(&rustix::fs::statfs(existing).ok()?)
}

/// Whether the times of a file are this kernel's own. Those of a network file system, or of one in user space, may be cached for longer
/// than contents.
pub(crate) fn has_current_times(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| network_kind(&found).is_none() && !is_in_user_space(&found))
}

#[cfg(target_os = "linux")]
fn is_in_user_space(found: &rustix::fs::StatFs) -> bool {
    const FUSE: u64 = 0x6573_5546;
    found.f_type.cast_unsigned() & 0xffff_ffff == FUSE
}

#[cfg(not(target_os = "linux"))]
fn is_in_user_space(_found: &rustix::fs::StatFs) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn network_kind(found: &rustix::fs::StatFs) -> Option<&'static str> {
    // The field's type differs between architectures; the magic numbers have 32 bits.
    kind_of_magic(found.f_type.cast_unsigned() & 0xffff_ffff)
}

/// The kernel's magic numbers (statfs(2)) of file systems that other machines write too.
#[cfg(target_os = "linux")]
fn kind_of_magic(magic: u64) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "nfs",
        0x517b => "smb",
        0xff53_4d42 => "cifs",
        0xfe53_4d42 => "smb2",
        0x5346_414f => "afs",
        0x00c3_6400 => "ceph",
        0x0102_1997 => "9p",
        0x0bd0_0bd0 => "lustre",
        0x4750_4653 => "gpfs",
        0x7375_7245 => "coda",
        _ => return None,
    })
}

#[cfg(target_os = "macos")]
fn network_kind(found: &rustix::fs::StatFs) -> Option<&'static str> {
    const MNT_LOCAL: u32 = 0x1000;
    (found.f_flags & MNT_LOCAL == 0).then_some("not local")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_network_file_systems_are_refused() {
        assert_eq!(kind_of_magic(0x6969), Some("nfs"));
        assert_eq!(kind_of_magic(0xff53_4d42), Some("cifs"));
        assert_eq!(kind_of_magic(0xef53), None, "ext4");
        assert_eq!(kind_of_magic(0x0102_1994), None, "tmpfs");
        assert_eq!(network_file_system(Path::new("/no/such/place")), None);
    }
}
