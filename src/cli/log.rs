//! `jitney log`: checks the log in a data directory that no broker has open. Nothing there is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::shell::Output;
use crate::host::disk;
use crate::host::placement::{self, Placement, PlacementError};
use crate::host::read_only::ReadOnlyLog;
use crate::system::print;
use jitney_broker::access::Profile;
use jitney_gateway::Gateway;
use jitney_journal::{Cut, Error, LogReader as _};
use jitney_shard::{Checked, DamageEffect, DamagePlace, Finding};

/// What can be done with a log.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Check a data directory: every group of records, every message's bytes, and the record of shards. The exit code is 0
    /// if it is sound, 1 if anything is damaged, 2 if it cannot be checked, and 4 if there is no such directory.
    Check(CheckArgs),
}

/// Check a data directory.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The data directory of a broker that does not run.
    directory: PathBuf,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// The result for a directory.
#[derive(Debug, Serialize)]
struct DirectoryResult {
    directory: String,
    /// Nothing is damaged.
    sound: bool,
    /// What is wrong with the record of namespaces and their shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    shards: Vec<ShardResult>,
}

/// The result for a shard. The counts are left out where too much is damaged to have them.
#[derive(Debug, Serialize)]
struct ShardResult {
    shard: u32,
    #[serde(flatten)]
    contents: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    torn_end: Option<Torn>,
    damage: Vec<Damage>,
}

#[derive(Debug, Serialize)]
struct Counts {
    segments: usize,
    groups: u64,
    newest_group: u64,
    messages: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Torn {
    file: String,
    offset: u64,
    bytes: u64,
    groups: u64,
    meaning: &'static str,
}

#[derive(Debug, Serialize)]
struct Damage {
    file: String,
    offset: u64,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence_number: Option<u64>,
    advice: &'static str,
}

/// The meaning of a torn end.
const TORN: &str = "normal after a crash or a power cut: these groups were never synced, and the next start removes them. After a stop \
    in order it would be damage of the newest group";

/// Why a directory cannot be checked.
#[derive(Debug, thiserror::Error)]
enum NotChecked {
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} is no data directory: it has no log", .0.display())]
    NoLog(PathBuf),
    #[error("a broker runs with {}: stop it, or check a copy that jitney backup and jitney restore have made", .0.display())]
    InUse(PathBuf),
    #[error(transparent)]
    Storage(#[from] Error),
}

/// Carries a command out.
pub(crate) fn run(command: &LogCommand) -> ExitCode {
    let LogCommand::Check(args) = command;
    if !args.directory.exists() {
        let directory = args.directory.display();
        print::complain(format_args!("jitney: There is no directory {directory}."));
        return ExitCode::from(4);
    }
    match check(&args.directory) {
        Ok(report) => {
            match args.output {
                Output::Json => {
                    let text = serde_json::to_string_pretty(&report);
                    let text = text.expect("texts and numbers are JSON");
                    print::line(print::escaped_in_json(&text));
                }
                Output::Table => print::line(report.text().trim_end()),
            }
            ExitCode::from(u8::from(!report.sound))
        }
        Err(error) => {
            print::complain(format_args!("jitney: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Checks all shards of a data directory.
fn check(directory: &Path) -> Result<DirectoryResult, NotChecked> {
    let numbers = shards_of(directory)?;
    let (mut shards, mut namespaces) = (Vec::new(), BTreeMap::new());
    for number in numbers {
        let place = placement::directory_of(directory, number);
        let log = match ReadOnlyLog::open(&place) {
            Err(Error::Locked { .. }) => return Err(NotChecked::InUse(place)),
            log => log?,
        };
        let is_empty = log.segments()?.is_empty() && log.checkpoints()?.is_empty();
        if number == 0 && is_empty && !directory.join(placement::FILE).exists() {
            return Err(NotChecked::NoLog(directory.to_owned()));
        }
        let gateway = || Gateway::new(u64::from(number), Profile::Development);
        let checked = jitney_shard::check(gateway, &log, jitney_journal::Options::new(0))?;
        if let Some(contents) = &checked.contents {
            namespaces.insert(number, contents.namespaces.clone());
        }
        shards.push(ShardResult::new(number, checked));
    }
    let placement = fault_of_placement(directory, &namespaces)?;
    let sound = placement.is_none() && shards.iter().all(|shard| shard.damage.is_empty());
    Ok(DirectoryResult {
        directory: directory.display().to_string(),
        sound,
        placement,
        shards,
    })
}

/// Returns the shards that have a directory.
fn shards_of(directory: &Path) -> Result<BTreeSet<u32>, NotChecked> {
    let failed = |source| NotChecked::Io {
        path: directory.to_owned(),
        source,
    };
    let mut numbers = BTreeSet::from([0]);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let number = name.to_str().and_then(placement::number_of);
        numbers
            .extend(number.filter(|&number| placement::directory_of(directory, number).is_dir()));
    }
    Ok(numbers)
}

/// Says what is wrong with the record of namespaces and their shards, if anything is.
fn fault_of_placement(
    directory: &Path,
    namespaces: &BTreeMap<u32, BTreeSet<String>>,
) -> Result<Option<String>, NotChecked> {
    let checked = match Placement::read(directory) {
        Ok(Some(placement)) => placement.check(directory, namespaces),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) => Ok(None),
        Err(PlacementError::Io { path, source }) => Err(NotChecked::Io { path, source }),
        Err(error) => Ok(Some(error.to_string())),
    }
}

impl ShardResult {
    fn new(shard: u32, checked: Checked) -> Self {
        let torn_end = checked.contents.as_ref().and_then(|contents| contents.torn);
        let contents = checked.contents.map(|contents| Counts {
            segments: contents.log.segments,
            groups: contents.groups,
            newest_group: contents.end.frame,
            messages: contents.messages,
            bytes: contents.log.bytes,
        });
        let damage = checked.damage.into_iter();
        Self {
            shard,
            contents,
            torn_end: torn_end.map(|cut| Torn::new(shard, cut)),
            damage: damage.map(|found| Damage::new(shard, found)).collect(),
        }
    }
}

/// Returns the name of a shard's file in the data directory.
fn file_of(shard: u32, name: &str) -> String {
    let path = placement::directory_of(Path::new(""), shard).join(name);
    path.display().to_string()
}

impl Torn {
    fn new(shard: u32, cut: Cut) -> Self {
        Self {
            file: file_of(shard, &disk::segment_name(cut.segment)),
            offset: cut.offset,
            bytes: cut.bytes,
            groups: cut.frames,
            meaning: TORN,
        }
    }
}

impl Damage {
    fn new(shard: u32, found: Finding) -> Self {
        let (name, offset) = match found.place {
            DamagePlace::Checkpoint(number) => (disk::checkpoint_name(number), 0),
            DamagePlace::Segment(segment, offset) => (disk::segment_name(segment), offset),
            DamagePlace::Records => ("*.seg".to_owned(), 0),
        };
        let advice = match found.effect {
            DamageEffect::StopsStart => {
                "a broker does not start with it: restore a backup; or copy the directory, and start once with \
                 --accept-data-loss to continue without this part"
            }
            DamageEffect::StopsAnyStart => {
                "a broker does not start with it: restore a backup, or begin with an empty directory"
            }
            DamageEffect::Message => {
                "a broker starts with it: the message goes to the dead letters with an empty body (MessageDamaged), and all \
                 others are unaffected; check the disk, and restore a backup if the message is needed"
            }
            DamageEffect::None => "no message needs these bytes; check the disk",
        };
        let (entity, sequence_number) = found.message.unzip();
        Self {
            file: file_of(shard, &name),
            offset,
            what: found.what,
            entity,
            sequence_number,
            advice,
        }
    }
}

impl DirectoryResult {
    /// Returns it for people.
    fn text(&self) -> String {
        let mut text = String::new();
        for shard in &self.shards {
            shard.add_to(&mut text);
        }
        if let Some(placement) = &self.placement {
            let _ = writeln!(text, "placement: {placement}");
        }
        let directory = &self.directory;
        let _ = match self
            .shards
            .iter()
            .map(|shard| shard.damage.len())
            .sum::<usize>()
        {
            _ if self.sound => writeln!(text, "{directory}: sound"),
            0 => writeln!(text, "{directory}: damaged"),
            1 => writeln!(text, "{directory}: damaged in 1 place"),
            count => writeln!(text, "{directory}: damaged in {count} places"),
        };
        text
    }
}

impl ShardResult {
    // Writing to a string does not fail.
    fn add_to(&self, text: &mut String) {
        let number = self.shard;
        let _ = match &self.contents {
            Some(it) => writeln!(
                text,
                "shard {number}: {} messages; {} segments, {} bytes, {} groups, the newest is {}",
                it.messages, it.segments, it.bytes, it.groups, it.newest_group
            ),
            None => writeln!(text, "shard {number}: its log cannot be read"),
        };
        if let Some(torn) = &self.torn_end {
            let _ = writeln!(
                text,
                "  torn end: {}, byte {}: {} bytes, {} groups\n    {}",
                torn.file, torn.offset, torn.bytes, torn.groups, torn.meaning
            );
        }
        for damage in &self.damage {
            let _ = write!(
                text,
                "  damage: {}, byte {}: {}",
                damage.file, damage.offset, damage.what
            );
            if let (Some(entity), Some(number)) = (&damage.entity, damage.sequence_number) {
                let _ = write!(text, "; message {number} of {entity}");
            }
            let _ = writeln!(text, "\n    {}", damage.advice);
        }
    }
}
