//! The permissions of the files of the data directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use super::Process;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn a_data_directory_is_private_to_the_user_of_the_broker() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let broker = Process::start("umask 0", &data, &["--auth", "sas"]);
    assert_eq!(mode(&data), 0o700);
    let certs = data.join("certs");
    assert_eq!(mode(&certs), 0o700);
    for directory in [&data, &certs] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
            }
        }
    }
    assert!(certs.join("ca.p12").exists());
    drop(broker);
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    let broker = Process::start("", &data, &["--auth", "sas"]);
    assert!(
        broker.told.contains("is open to other users"),
        "{}",
        broker.told
    );
    assert_eq!(mode(&data), 0o755);
}
