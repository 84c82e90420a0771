//! The format of the file of the history: docs/log-format.md#the-history.

use std::collections::{BTreeMap, VecDeque};

use super::kept::KeptHistories;
use super::namespace::NamespaceHistory;
use super::rings::{Interval, Intervals, OfRanges, Range};
use super::series::{Gauges, IntervalCounts, NewSeries, NumberedPoint, Point, Points, Series};
use crate::limits;
use jitney_base::time::Timestamp;

/// What the file begins with.
const MAGIC: [u8; 8] = *b"jitney-h";
/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// Bytes before the payload: the magic, the version, the checksum, the length of the payload.
const HEADER: usize = 8 + 4 + 4 + 8;
/// Where the bytes begin that the checksum is of.
const CHECKED: usize = 8 + 4 + 4;

/// Why a file is no history.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Malformed {
    #[error("it is no file of a history")]
    Other,
    #[error("its version is {0}, and this release knows {VERSION}")]
    Version(u32),
    #[error("it has {found} bytes behind its header, and not {said} as it says")]
    Length { found: u64, said: u64 },
    #[error("its checksum is wrong")]
    Checksum,
    #[error("it is damaged at byte {0} of its contents")]
    Damaged(usize),
}

/// Returns the contents of a file with these namespaces, by their names in lower case.
pub(super) fn encode<'a>(
    namespaces: impl ExactSizeIterator<Item = (&'a String, &'a NamespaceHistory)>,
    now: Timestamp,
) -> Vec<u8> {
    let mut payload = PayloadWriter::default();
    payload.time(now);
    payload.count(namespaces.len());
    for (name, history) in namespaces {
        payload.text(name);
        payload.namespace(history);
    }
    let payload = payload.0;
    let length = u64::try_from(payload.len()).unwrap_or(u64::MAX);
    let mut file = Vec::with_capacity(HEADER + payload.len());
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&length.to_le_bytes()), &payload);
    file.extend_from_slice(&sum.to_le_bytes());
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&payload);
    file
}

/// Reads the contents of a file.
///
/// # Errors
///
/// They are no history, of another version, or damaged.
pub(super) fn decode(file: &[u8]) -> Result<KeptHistories, Malformed> {
    let (header, payload) = file.split_at_checked(HEADER).ok_or(Malformed::Other)?;
    let rest = header.strip_prefix(&MAGIC).ok_or(Malformed::Other)?;
    let (version, rest) = rest.split_first_chunk().ok_or(Malformed::Other)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(Malformed::Version(version));
    }
    let (sum, rest) = rest.split_first_chunk().ok_or(Malformed::Other)?;
    let (length, _) = rest.split_first_chunk().ok_or(Malformed::Other)?;
    let (found, said) = (
        u64::try_from(payload.len()).unwrap_or(u64::MAX),
        u64::from_le_bytes(*length),
    );
    if found != said {
        return Err(Malformed::Length { found, said });
    }
    let checked = file.get(CHECKED..).unwrap_or_default();
    if crc32c::crc32c(checked) != u32::from_le_bytes(*sum) {
        return Err(Malformed::Checksum);
    }
    let mut reader = PayloadReader {
        bytes: payload,
        at: 0,
        series: 0,
    };
    reader.kept().ok_or(Malformed::Damaged(reader.at))
}

/// Writes the payload.
#[derive(Debug, Default)]
struct PayloadWriter(Vec<u8>);

impl PayloadWriter {
    fn number(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                self.0.push(low & 0x7f);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    fn small(&mut self, value: u32) {
        self.number(value.into());
    }

    fn count(&mut self, value: usize) {
        self.number(u64::try_from(value).unwrap_or(u64::MAX));
    }

    fn time(&mut self, time: Timestamp) {
        self.number(time.as_millis().cast_unsigned());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn namespace(&mut self, history: &NamespaceHistory) {
        for range in Range::ALL {
            self.intervals(history.intervals.of(range));
        }
        self.count(history.series.len());
        for (key, series) in &history.series {
            self.text(key);
            self.gauges(series.messages);
            for range in Range::ALL {
                self.points(series.points.of(range));
            }
        }
    }

    fn intervals(&mut self, intervals: &Intervals) {
        self.small(intervals.first);
        self.count(intervals.ended.len());
        let mut last = 0;
        for interval in &intervals.ended {
            // Ends increase.
            let end = interval.end.as_millis();
            self.number(end.wrapping_sub(last).cast_unsigned());
            self.small(interval.length);
            self.small(interval.watched);
            last = end;
        }
        self.count(usize::from(intervals.open.is_some()));
        if let Some(open) = intervals.open {
            self.time(open.end);
            self.small(open.length);
            self.small(open.watched);
        }
    }

    fn points(&mut self, points: &Points) {
        self.small(points.from);
        self.gauges(points.before);
        self.counts(points.open);
        self.count(points.points.len());
        for it in &points.points {
            self.small(it.number);
            self.counts(it.point.counts);
            self.gauges(it.point.messages);
        }
    }

    fn counts(&mut self, counts: IntervalCounts) {
        let IntervalCounts {
            incoming,
            published,
            completed,
            dead_lettered,
        } = counts;
        for count in [incoming, published, completed, dead_lettered] {
            self.small(count);
        }
    }

    fn gauges(&mut self, gauges: Gauges) {
        let Gauges {
            active,
            deferred,
            scheduled,
            dead_letters,
        } = gauges;
        for count in [active, deferred, scheduled, dead_letters] {
            self.small(count);
        }
    }
}

/// Reads the payload. What it returns holds what the history promises, whatever the bytes are.
#[derive(Debug)]
struct PayloadReader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many series were read.
    series: usize,
}

impl PayloadReader<'_> {
    fn kept(&mut self) -> Option<KeptHistories> {
        let _written = self.time()?;
        let count = self.count(limits::NAMESPACES_MAX)?;
        let mut namespaces = BTreeMap::new();
        for _ in 0..count {
            let name = self.text()?;
            let history = self.namespace()?;
            namespaces.insert(name, history);
        }
        (self.at == self.bytes.len()).then_some(KeptHistories { namespaces })
    }

    fn namespace(&mut self) -> Option<NamespaceHistory> {
        let mut history = NamespaceHistory::default();
        for range in Range::ALL {
            *history.intervals.of_mut(range) = self.intervals(range)?;
        }
        for _ in 0..self.count(limits::HISTORY_SERIES_MAX)? {
            self.series += 1;
            if limits::HISTORY_SERIES_MAX < self.series {
                return None;
            }
            let key = self.text()?;
            let series = self.series(&history.intervals)?;
            history.series.insert(key, series);
        }
        Some(history)
    }

    fn intervals(&mut self, range: Range) -> Option<Intervals> {
        let mut intervals = Intervals {
            first: self.small()?,
            ..Intervals::default()
        };
        let count = self.count(range.intervals_max())?;
        let mut ended = VecDeque::with_capacity(count);
        let mut last = Timestamp::EPOCH;
        for _ in 0..count {
            let end = last.as_millis().checked_add(self.signed()?)?;
            let interval = self.interval(Timestamp::from_millis(end))?;
            if interval.end <= last || interval.begin() < last {
                return None;
            }
            last = interval.end;
            ended.push_back(interval);
        }
        intervals.ended = ended;
        if self.count(1)? == 1 {
            let end = self.time()?;
            let open = self.interval(end)?;
            if open.end <= last || open.begin() < last {
                return None;
            }
            intervals.open = Some(open);
        }
        // The numbers that follow have to fit.
        (intervals.next() < u32::MAX / 2).then_some(intervals)
    }

    fn interval(&mut self, end: Timestamp) -> Option<Interval> {
        let (length, watched) = (self.small()?, self.small()?);
        (watched <= length).then_some(Interval {
            end,
            length,
            watched,
        })
    }

    fn series(&mut self, intervals: &OfRanges<Intervals>) -> Option<Series> {
        let messages = self.gauges()?;
        let mut series = Series::new(intervals, NewSeries::Unknown { messages });
        series.messages = messages;
        for range in Range::ALL {
            *series.points.of_mut(range) = self.points(intervals.of(range))?;
        }
        Some(series)
    }

    fn points(&mut self, intervals: &Intervals) -> Option<Points> {
        let mut points = Points {
            from: self.small()?,
            before: self.gauges()?,
            open: self.counts()?,
            ..Points::default()
        };
        let (mut least, next) = (intervals.first, intervals.next());
        if !(least..=next).contains(&points.from) {
            return None;
        }
        let count = self.count(intervals.ended.len())?;
        points.points.reserve_exact(count);
        for _ in 0..count {
            let number = self.small()?;
            let (counts, messages) = (self.counts()?, self.gauges()?);
            if !(least..next).contains(&number) {
                return None;
            }
            least = number + 1;
            let point = Point { counts, messages };
            points.points.push_back(NumberedPoint { number, point });
        }
        Some(points)
    }

    fn counts(&mut self) -> Option<IntervalCounts> {
        Some(IntervalCounts {
            incoming: self.small()?,
            published: self.small()?,
            completed: self.small()?,
            dead_lettered: self.small()?,
        })
    }

    fn gauges(&mut self) -> Option<Gauges> {
        Some(Gauges {
            active: self.small()?,
            deferred: self.small()?,
            scheduled: self.small()?,
            dead_letters: self.small()?,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            let low = u64::from(byte & 0x7f);
            // The tenth byte has one bit.
            if shift == 63 && 1 < byte {
                return None;
            }
            value |= low << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// Reads a number that is not negative as a difference of times.
    fn signed(&mut self) -> Option<i64> {
        i64::try_from(self.number()?).ok()
    }

    fn time(&mut self) -> Option<Timestamp> {
        self.signed().map(Timestamp::from_millis)
    }

    fn count(&mut self, max: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= max).then_some(count)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.count(limits::HISTORY_NAME_BYTES_MAX)?;
        let end = self.at.checked_add(length)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        String::from_utf8(bytes.to_vec()).ok()
    }
}
