//! Configuration files as users of the emulator have them, stored beside what a check tells of
//! each: standard output, standard error, and the exit code.
//!
//! Their shapes are those of public repositories: sections that are missing or empty, names in
//! wrong places, values beyond the emulator's bounds, byte order marks, comments. `UPDATE=1 cargo
//! test --test it configurations` writes the answers anew; commit a difference only if it helps
//! the user of the file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn every_configuration_is_told_what_is_stored_beside_it() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/configurations");
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == "json"))
        .collect();
    files.sort();
    assert!(10 <= files.len(), "the configurations are there");
    for file in files {
        let told = check(&directory, &file);
        let beside = file.with_extension("txt");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&beside, told).unwrap();
        } else {
            let text = fs::read_to_string(&beside)
                .unwrap_or_else(|error| panic!("{}: {error}", beside.display()));
            assert!(
                text == told,
                "{}:\n{text}\nis now:\n{told}",
                beside.display()
            );
        }
    }
}

/// Runs `jitney config check` on a file of a directory, and returns its output and its exit code.
fn check(directory: &Path, file: &Path) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_jitney"))
        .args(["config", "check"])
        .arg(file.file_name().unwrap())
        .env_remove("RUST_LOG")
        .current_dir(directory)
        .output()
        .unwrap();
    let code = done.status.code().expect("a check is not killed");
    let output = String::from_utf8(done.stdout).unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    format!("{output}{error}exit code {code}\n")
}
