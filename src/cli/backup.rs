//! `jitney backup` and `jitney restore`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use hyper::Method;

use super::error::CommandError;
use super::shell::Shell;
use super::table::to_json;
use super::words;
use crate::host::restore as restoring;
use crate::system::print;
use jitney_api::backups::{BackupMade, BackupRequest};

/// Back up a broker that runs.
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// The directory on the broker's machine: a new one, or one with a backup of this broker, which is replaced; files that it has
    /// are not copied again.
    directory: PathBuf,
}

/// Create a data directory from a backup.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The directory of the backup.
    backup: PathBuf,
    /// The data directory that is made; it must not exist, or be empty.
    directory: PathBuf,
}

impl Shell {
    /// Has the broker make a backup, and waits for it.
    pub(super) async fn back_up(&self, args: &BackupArgs) -> Result<ExitCode, CommandError> {
        let directory = std::path::absolute(&args.directory)
            .map_err(|error| CommandError::Usage(error.to_string()))?;
        let Some(directory) = directory.to_str() else {
            let text = "the directory's name is not UTF-8";
            return Err(CommandError::Usage(text.to_owned()));
        };
        let request = BackupRequest {
            directory: directory.to_owned(),
        };
        let body = to_json(&request);
        let began = Instant::now();
        let made = self
            .client
            .ask(Method::POST, "server/backups", Some(&body), &[]);
        let made: BackupMade = made.await?;
        let said = format!(
            "Backed up to {}: {} ({}), {} of them new, in {}. `jitney restore` makes a data directory of it.",
            directory,
            words::count(words::whole(made.files), "file"),
            words::size(made.bytes),
            words::number(made.copied_files),
            words::taken(began.elapsed())
        );
        self.done(&made, &said);
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes a data directory from a backup. The exit code is 0 if it is made, 1 if the backup is damaged or the directory not
/// empty, 2 if the system refuses something, and 4 if there is no such directory.
pub(crate) fn restore(args: &RestoreArgs) -> ExitCode {
    if !args.backup.exists() {
        let backup = args.backup.display();
        print::complain(format_args!("jitney: There is no directory {backup}."));
        return ExitCode::from(4);
    }
    match restoring::restore(&args.backup, &args.directory) {
        Ok(manifest) => {
            print::line(format_args!(
                "{}: restored {} files of the backup of {}",
                args.directory.display(),
                manifest.files.len(),
                manifest.made_at
            ));
            ExitCode::SUCCESS
        }
        Err(error) => {
            print::complain(format_args!("jitney: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
