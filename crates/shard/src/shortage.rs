//! Why a shard accepts no messages, and what helps.

use std::fmt;

use super::{Shard, Store};
use jitney_broker::namespace::{Lack, Room};
use jitney_journal::Space;

/// What there is too little of for more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// The disk is full; this much is free, if that is known.
    Disk(Option<Space>),
    /// Memory is full, as its limit has it.
    Memory {
        /// Bytes that are counted: indexes of queues, most of all.
        counted: u64,
        /// Bytes that may be counted before messages are accepted again.
        most: u64,
    },
    /// The store of the journal is away, or the broker stops.
    Store,
}

/// What makes space without a change of the machine.
pub const WHAT_FREES: &str = "`jitney purge` and the deletion of entities free some at once, and receivers do as they complete messages; \
     jobs that move or change messages wait until there is room";

impl Shortage {
    /// Returns it as a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk(_) => "disk",
            Self::Memory { .. } => "memory",
            Self::Store => "store",
        }
    }

    /// Returns the bytes that are free, if they are known.
    #[must_use]
    pub fn free(self) -> Option<u64> {
        match self {
            Self::Disk(space) => space.map(|space| space.free),
            Self::Memory { .. } | Self::Store => None,
        }
    }

    /// Returns the bytes that must become free in addition, if they are known.
    #[must_use]
    pub fn missing(self) -> Option<u64> {
        match self {
            Self::Disk(space) => space.map(|it| it.needed.saturating_sub(it.free)),
            Self::Memory { counted, most } => Some(counted.saturating_sub(most)),
            Self::Store => None,
        }
    }

    /// Returns how much there is, and is needed, for a client that is refused; nothing if that is not known.
    pub(super) fn figures(self) -> String {
        match self {
            Self::Disk(Some(Space { free, needed })) => {
                format!(
                    "{} MiB are free, {} MiB are needed",
                    free >> 20,
                    needed >> 20
                )
            }
            Self::Memory { counted, most } if most <= counted => {
                format!(
                    "{} MiB are counted, {} MiB may be",
                    counted >> 20,
                    most >> 20
                )
            }
            // The process has too much that is not counted.
            Self::Memory { .. } | Self::Disk(None) | Self::Store => String::new(),
        }
    }

    /// Returns what helps, for operators.
    #[must_use]
    pub fn remedy(self) -> String {
        match self {
            Self::Disk(_) => {
                format!("Make space in the file system of the data directory. {WHAT_FREES}.")
            }
            Self::Memory { .. } => format!("Raise --memory-limit. {WHAT_FREES}."),
            Self::Store => "It ends by itself when the store is back.".to_owned(),
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(None) => formatter.write_str("the disk is full"),
            Self::Disk(Some(Space { free, needed })) => write!(
                formatter,
                "the disk is full: {} MiB are free, and {} MiB are needed for the next segment of the log and a checkpoint",
                free >> 20,
                needed >> 20
            ),
            Self::Memory { counted, most } if counted < most => write!(
                formatter,
                "memory is full: the process has nearly all of --memory-limit, of which {} MiB are counted",
                counted >> 20
            ),
            Self::Memory { counted, most } => write!(
                formatter,
                "memory is full, as --memory-limit has it: {} MiB are counted, and messages are accepted again at {} MiB",
                counted >> 20,
                most >> 20
            ),
            Self::Store => {
                formatter.write_str("the store of the log is away, or the broker is stopping")
            }
        }
    }
}

impl Shard {
    /// Returns why no messages are accepted; none if they are.
    #[must_use]
    pub fn shortage(&self) -> Option<Shortage> {
        self.shortage_of(self.room())
    }

    pub(super) fn shortage_of(&self, room: Room) -> Option<Shortage> {
        match room {
            Room::Enough => None,
            Room::None(Lack::Disk) => Some(Shortage::Disk(self.journal.space())),
            Room::None(Lack::Memory) => {
                let bytes = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
                Some(Shortage::Memory {
                    counted: bytes(self.memory.counted()),
                    most: bytes(self.memory.enough()),
                })
            }
            Room::None(Lack::Store) => Some(Shortage::Store),
        }
    }

    /// Returns whether messages are accepted.
    #[must_use]
    pub fn room(&self) -> Room {
        if self.is_stopping || self.store != Store::Here {
            return Room::None(Lack::Store);
        }
        self.maintenance.room
    }
}
