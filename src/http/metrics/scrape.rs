//! The metrics of one answer, and their text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::families::{self, Family, Kind};
use super::process;
use crate::host::owner_message::ShardReport;
use crate::store::{Fitness, FleetView, Health, NamespaceRow, ServerRow, StoreHealth, StoreView};
use jitney_base::address::SubQueue;
use jitney_base::histogram::{BOUNDS_MICROS, Histogram};
use jitney_broker::namespace::{AttentionKind, DeniedKind, EntityStatistics, QueueStatistics};
use jitney_queue::{DeadLetterCause, EntityKind};

/// The name of the sum of entities that have no metrics of their own: no entity can have it.
const OTHERS: &str = "*";

/// Everything that one answer tells.
#[derive(Debug, Clone)]
pub(super) struct Scrape {
    pub(super) process: process::Usage,
    pub(super) memory: [(&'static str, usize); 3],
    /// Bytes of answers of the JSON API, and how many had no room.
    pub(super) answers: (usize, u64),
    /// The bytes that unauthenticated connections hold, and how many of these were closed for want of room.
    pub(super) unauthenticated: (usize, u64),
    pub(super) shards: Vec<ShardScrape>,
    /// The servers that share a store, if namespaces are in one.
    pub(super) fleet: Option<FleetScrape>,
}

/// The servers that share a store.
#[derive(Debug, Clone)]
pub(super) struct FleetScrape {
    /// This server.
    pub(super) server: String,
    pub(super) view: FleetView,
    pub(super) health: Health,
}

/// A shard of the answer.
#[derive(Debug, Clone)]
pub(super) struct ShardScrape {
    /// Its number.
    pub(super) name: String,
    pub(super) is_healthy: bool,
    pub(super) report: ShardReport,
}

type Labels<'a> = Vec<(&'static str, &'a str)>;
/// Metrics that have one value for a shard, and how it is found.
type ShardFamily = (&'static Family, fn(&ShardReport) -> Sample);
/// Metrics that have one value for a queue.
type OfQueue = (&'static Family, fn(&QueueStatistics) -> Sample);
/// Counters that have one value for a queue.
type CountOfQueue = (&'static Family, fn(&QueueStatistics) -> u64);

/// A value of a metric.
enum Sample {
    Number(u64),
    Seconds(f64),
    Histogram(Histogram),
}

impl Scrape {
    /// Returns the text format of OpenMetrics 1.0.
    pub(super) fn openmetrics(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::new(self)));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = MetricsWriter(encoder);
        self.of_process(&mut out)?;
        self.of_fleet(&mut out)?;
        self.of_shards(&mut out)?;
        self.of_logs(&mut out)?;
        self.of_entities(&mut out)?;
        self.of_namespaces(&mut out)
    }
}

/// The writer of metrics.
struct MetricsWriter<'a>(DescriptorEncoder<'a>);

impl MetricsWriter<'_> {
    /// Writes a metric with all its values.
    fn write<'a>(
        &mut self,
        family: &Family,
        samples: impl Iterator<Item = (Labels<'a>, Sample)>,
    ) -> fmt::Result {
        let kind = match family.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let mut metric = self
            .0
            .encode_descriptor(family.name, family.help, None, kind)?;
        for (labels, sample) in samples {
            debug_assert!(
                labels.iter().map(|(name, _)| name).eq(family.labels),
                "{} has the labels that are documented",
                family.name
            );
            let mut metric = metric.encode_family(&labels)?;
            match (family.kind, sample) {
                (Kind::Counter, Sample::Number(count)) => {
                    metric.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
                }
                (Kind::Counter, Sample::Seconds(seconds)) => {
                    metric.encode_counter::<NoLabelSet, _, f64>(&seconds, None)?;
                }
                (Kind::Gauge, Sample::Number(count)) => {
                    metric.encode_gauge(&i64::try_from(count).unwrap_or(i64::MAX))?;
                }
                (Kind::Gauge, Sample::Seconds(seconds)) => metric.encode_gauge(&seconds)?,
                (_, Sample::Histogram(histogram)) => {
                    let (sum, count, buckets) = buckets(&histogram);
                    metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
                }
                (Kind::Histogram, Sample::Number(_) | Sample::Seconds(_)) => {
                    return Err(fmt::Error);
                }
            }
        }
        Ok(())
    }

    fn one(&mut self, family: &Family, sample: Sample) -> fmt::Result {
        self.write(family, std::iter::once((Labels::new(), sample)))
    }
}

/// Returns a histogram's sum in seconds, its count, and the number in each bucket by its upper bound in seconds.
fn buckets(histogram: &Histogram) -> (f64, u64, Vec<(f64, u64)>) {
    let bounds = BOUNDS_MICROS.iter().map(|&bound| seconds(bound));
    let bounds = bounds.chain(std::iter::once(f64::INFINITY));
    let buckets = bounds.zip(histogram.counts().iter().copied()).collect();
    (seconds(histogram.sum_micros()), histogram.count(), buckets)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a double has 285 years of microseconds"
)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

fn number(count: usize) -> Sample {
    Sample::Number(u64::try_from(count).unwrap_or(u64::MAX))
}

/// A number that is not negative.
fn count(count: i64) -> Sample {
    Sample::Number(u64::try_from(count).unwrap_or_default())
}

impl Scrape {
    fn of_process(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        out.write(
            &families::BUILD,
            std::iter::once((version, Sample::Number(1))),
        )?;
        let process = &self.process;
        out.one(&families::PROCESS_CPU, Sample::Seconds(process.cpu_seconds))?;
        out.one(
            &families::PROCESS_RESIDENT,
            Sample::Number(process.resident_bytes),
        )?;
        out.one(
            &families::PROCESS_VIRTUAL,
            Sample::Number(process.virtual_bytes),
        )?;
        out.one(&families::PROCESS_THREADS, Sample::Number(process.threads))?;
        out.one(&families::PROCESS_FDS, Sample::Number(process.descriptors))?;
        out.one(
            &families::PROCESS_FDS_MAX,
            Sample::Number(process.descriptors_max),
        )?;
        out.one(
            &families::PROCESS_START,
            Sample::Seconds(process.started_at),
        )?;
        let memory = self.memory.iter();
        let memory = memory.map(|(owner, bytes)| (vec![("owner", *owner)], number(*bytes)));
        out.write(&families::MEMORY, memory)?;
        let (bytes, refused) = self.answers;
        out.one(&families::ANSWERS_BYTES, number(bytes))?;
        out.one(&families::ANSWERS_REFUSED, Sample::Number(refused))?;
        let (held, closed) = self.unauthenticated;
        out.one(&families::UNAUTHENTICATED_BYTES, number(held))?;
        out.one(&families::UNAUTHENTICATED_CLOSED, Sample::Number(closed))
    }

    fn of_fleet(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let fleet = self.fleet.as_ref();
        let servers = fleet.map(|it| it.view.servers()).unwrap_or_default();
        let each = |value: fn(&ServerRow) -> Sample| {
            let all = servers.iter();
            all.map(move |it| (vec![("server", &it.name[..])], value(it)))
        };
        out.write(
            &families::FLEET_ALIVE,
            each(|it| number(usize::from(it.is_alive))),
        )?;
        let alive = servers.iter().filter(|it| it.is_alive);
        let fit = alive.map(|it| {
            let is_fit = it.fitness == Fitness::Fit;
            (vec![("server", &it.name[..])], number(usize::from(is_fit)))
        });
        out.write(&families::FLEET_FIT, fit)?;
        out.write(&families::FLEET_BEATS, each(|it| count(it.beat)))?;
        let ages = fleet.iter().flat_map(|it| &it.health.beat_ages);
        let ages = ages.map(|(server, age)| {
            let age = Sample::Seconds(age.as_secs_f64());
            (vec![("server", &server[..])], age)
        });
        out.write(&families::FLEET_BEAT_AGE, ages)?;
        self.of_shared_namespaces(out)?;
        self.of_stores(out)
    }

    /// The namespaces that servers share.
    fn of_shared_namespaces(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let fleet = self.fleet.as_ref();
        let namespaces = fleet.map(|it| it.view.namespaces()).unwrap_or_default();
        let own = fleet.map(|it| &it.server);
        let labels = |name| vec![("namespace", name)];
        let each = || namespaces.iter().map(|(name, (_, it))| (*name, *it));
        let is_owned = |it: &NamespaceRow| it.server.is_some() && it.server.as_ref() == own;
        let owned = each().map(|(name, it)| (labels(name), number(usize::from(is_owned(it)))));
        out.write(&families::NAMESPACE_OWNED, owned)?;
        let epochs = each().map(|(name, it)| (labels(name), count(it.epoch)));
        out.write(&families::NAMESPACE_EPOCH, epochs)?;
        let rates = each().map(|(name, it)| (labels(name), count(it.rate)));
        out.write(&families::NAMESPACE_RATE, rates)?;
        let is_suspended = |name| fleet.is_some_and(|it| it.health.suspended.contains_key(name));
        let suspended =
            each().map(|(name, _)| (labels(name), number(usize::from(is_suspended(name)))));
        out.write(&families::NAMESPACE_SUSPENDED, suspended)?;
        let quarantined =
            each().map(|(name, it)| (labels(name), number(usize::from(it.quarantined.is_some()))));
        out.write(&families::NAMESPACE_QUARANTINED, quarantined)?;
        let quotas =
            each().filter_map(|(name, it)| Some((labels(name), Sample::Number(it.quota?))));
        out.write(&families::NAMESPACE_QUOTA, quotas)?;
        let waits = fleet.iter().flat_map(|it| &it.health.quota_waits);
        let waits = waits.map(|(name, waits)| (labels(name), Sample::Number(*waits)));
        out.write(&families::NAMESPACE_QUOTA_WAITS, waits)
    }

    /// The databases that servers share.
    fn of_stores(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let health = || self.fleet.iter().flat_map(|it| &it.health.stores);
        let of_health = |value: fn(&StoreHealth) -> Sample| {
            health().map(move |it| (vec![("store", &it.name[..])], value(it)))
        };
        let stores = || self.fleet.iter().flat_map(|it| &it.view.stores);
        let of_database = |value: fn(&StoreView) -> i64| {
            stores().map(move |it| (vec![("store", &it.name[..])], count(value(it))))
        };
        let holds = of_health(|it| number(usize::from(it.holds_lease)));
        out.write(&families::FLEET_LEASE, holds)?;
        let reached = of_health(|it| number(usize::from(it.is_reached)));
        out.write(&families::STORE_REACHED, reached)?;
        #[allow(
            clippy::cast_precision_loss,
            reason = "milliseconds between two clocks are far below 2^53"
        )]
        let ahead = of_health(|it| Sample::Seconds(it.clock_offset as f64 / 1e3));
        out.write(&families::STORE_CLOCK, ahead)?;
        let age = of_database(|it| it.database.transaction_age);
        out.write(&families::STORE_AGE, age)?;
        let slots = of_database(|it| it.database.inactive_slots);
        out.write(&families::STORE_SLOTS, slots)?;
        let lag = of_database(|it| it.database.standby_lag);
        out.write(&families::STORE_LAG, lag)
    }

    fn of_shards(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let shards = || self.shards.iter();
        out.write(
            &families::HEALTHY,
            shards().map(|shard| (shard.labels(), number(usize::from(shard.is_healthy)))),
        )?;
        out.write(
            &families::ACCEPTS,
            self.of_each(|report| number(usize::from(report.statistics.shortage.is_none()))),
        )?;
        out.write(
            &families::MISSING,
            shards().filter_map(|shard| {
                let shortage = shard.report.statistics.shortage?;
                let labels = with(shard.labels(), "of", shortage.name());
                Some((labels, Sample::Number(shortage.missing()?)))
            }),
        )?;
        out.write(
            &families::CONNECTIONS,
            shards().flat_map(|shard| {
                let gateway = &shard.report.statistics.gateway;
                let without = gateway.connections - gateway.authorized;
                let by = [("true", gateway.authorized), ("false", without)];
                by.map(|(is, count)| (with(shard.labels(), "authorized", is), number(count)))
            }),
        )?;
        out.write(
            &families::AMQP_SESSIONS,
            self.of_each(|report| number(report.sessions)),
        )?;
        out.write(
            &families::LINKS,
            shards().flat_map(|shard| {
                let gateway = &shard.report.statistics.gateway;
                let by = [
                    ("sender", gateway.senders),
                    ("receiver", gateway.receivers),
                    ("other", gateway.other_links),
                ];
                by.map(|(role, count)| (with(shard.labels(), "role", role), number(count)))
            }),
        )?;
        out.write(
            &families::RECEIVES,
            self.of_each(|report| number(report.statistics.gateway.receives)),
        )?;
        out.write(
            &families::REFUSALS,
            shards().flat_map(|shard| {
                let refused = shard.report.statistics.gateway.refused;
                let by = DeniedKind::ALL.into_iter().zip(refused);
                by.map(move |(kind, count)| {
                    let labels = with(shard.labels(), "reason", kind.name());
                    (labels, Sample::Number(count))
                })
            }),
        )
    }

    fn of_logs(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let simple: [ShardFamily; 7] = [
            (&families::LOG_BYTES, |it| {
                Sample::Number(it.statistics.log.bytes)
            }),
            (&families::LOG_LIVE, |it| {
                Sample::Number(it.statistics.log.live_bytes)
            }),
            (&families::LOG_SEGMENTS, |it| {
                number(it.statistics.log.segments)
            }),
            (&families::LOG_GROUPS, |it| {
                Sample::Number(it.statistics.groups)
            }),
            (&families::LOG_IN_FLIGHT, |it| {
                number(it.statistics.in_flight_bytes)
            }),
            (&families::LOG_COMMIT, |it| {
                Sample::Histogram(it.commit_times)
            }),
            (&families::LOG_SYNC, |it| Sample::Histogram(it.sync_times)),
        ];
        for (family, value) in simple {
            out.write(family, self.of_each(value))?;
        }
        out.write(
            &families::LOG_CHECKPOINTS,
            self.shards.iter().flat_map(|shard| {
                let done = shard.report.statistics.maintenance;
                let by = [
                    ("written", done.checkpoints),
                    ("failed", done.checkpoints_failed),
                ];
                by.map(|(outcome, count)| {
                    let labels = with(shard.labels(), "outcome", outcome);
                    (labels, Sample::Number(count))
                })
            }),
        )?;
        let simple: [ShardFamily; 4] = [
            (&families::LOG_COMPACTIONS, |it| {
                Sample::Number(it.statistics.maintenance.compactions)
            }),
            (&families::LOG_COMPACTED, |it| {
                Sample::Number(it.statistics.maintenance.compacted_bytes)
            }),
            (&families::LOG_REMOVED, |it| {
                Sample::Number(it.statistics.maintenance.segments_removed)
            }),
            (&families::DAMAGED, |it| {
                Sample::Number(it.statistics.damaged)
            }),
        ];
        for (family, value) in simple {
            out.write(family, self.of_each(value))?;
        }
        Ok(())
    }

    fn of_entities(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        out.write(
            &families::MESSAGES,
            self.queues().flat_map(|(labels, queue)| {
                let by = [
                    ("active", queue.active),
                    ("deferred", queue.deferred),
                    ("scheduled", queue.scheduled),
                ];
                by.map(|(state, count)| (with(labels.clone(), "state", state), number(count)))
            }),
        )?;
        out.write(&families::OLDEST, self.oldest())?;
        let simple: [OfQueue; 5] = [
            (&families::LOCKED, |queue| number(queue.locked)),
            (&families::SIZE, |queue| Sample::Number(queue.bytes)),
            (&families::RECEIVERS, |queue| number(queue.receivers)),
            (&families::CREDIT, |queue| Sample::Number(queue.credit)),
            (&families::STUCK, |queue| number(queue.stuck)),
        ];
        for (family, value) in simple {
            out.write(
                family,
                self.queues().map(|(labels, queue)| (labels, value(queue))),
            )?;
        }
        out.write(
            &families::SESSIONS,
            self.queues().flat_map(|(labels, queue)| {
                let free = queue.sessions - queue.sessions_held;
                let by = [("held", queue.sessions_held), ("free", free)];
                by.map(|(state, count)| (with(labels.clone(), "state", state), number(count)))
            }),
        )?;
        let counters: [CountOfQueue; 12] = [
            (&families::INCOMING, |queue| queue.counters.incoming),
            (&families::DELIVERED, |queue| queue.counters.delivered),
            (&families::COMPLETED, |queue| queue.counters.completed),
            (&families::ABANDONED, |queue| queue.counters.abandoned),
            (&families::DEFERRED, |queue| queue.counters.deferred),
            (&families::SCHEDULED, |queue| queue.counters.scheduled),
            (&families::CANCELLED, |queue| queue.counters.cancelled),
            (&families::DUPLICATES, |queue| queue.counters.duplicates),
            (&families::EXPIRED, |queue| queue.counters.expired),
            (&families::LOCKS_EXPIRED, |queue| {
                queue.counters.locks_expired
            }),
            (&families::FORWARDED, |queue| queue.counters.forwarded),
            (&families::UNMATCHED, |queue| queue.counters.unmatched),
        ];
        for (family, value) in counters {
            let samples = self.queues();
            let samples = samples.map(|(labels, queue)| (labels, Sample::Number(value(queue))));
            out.write(family, samples)?;
        }
        out.write(
            &families::DEAD_LETTERED,
            self.queues().flat_map(|(labels, queue)| {
                let by = DeadLetterCause::ALL.into_iter();
                let by = by.zip(queue.counters.dead_lettered);
                // Those that never happened would be most of all series.
                let by = by.filter(|(_, count)| 0 < *count);
                by.map(move |(cause, count)| {
                    (
                        with(labels.clone(), "reason", cause.name()),
                        Sample::Number(count),
                    )
                })
            }),
        )
    }

    fn of_namespaces(&self, out: &mut MetricsWriter<'_>) -> fmt::Result {
        let all = self.shards.iter();
        let all = all.flat_map(|shard| &shard.report.statistics.gateway.attention);
        let attention = all.flat_map(|(namespace, counts)| {
            let kinds = AttentionKind::ALL.into_iter().zip(counts);
            kinds.map(move |(kind, count)| {
                let labels = vec![("namespace", namespace.as_str()), ("kind", kind.name())];
                (labels, number(*count))
            })
        });
        out.write(&families::ATTENTION, attention)?;
        let mut sums: BTreeMap<&str, (Histogram, Histogram)> = BTreeMap::new();
        for shard in &self.shards {
            let found = &shard.report.statistics.gateway.namespaces;
            let each = found.entities.iter().flat_map(|entity| {
                let queues = entity.queues.iter();
                queues.map(|(kind, queue)| (&entity.namespace, *kind, queue))
            });
            let others = found.others.iter();
            let others = others.map(|((namespace, kind), queue)| (namespace, *kind, queue));
            let queues = each
                .chain(others)
                .filter(|(_, kind, _)| *kind == SubQueue::Main);
            for (namespace, _, queue) in queues {
                let (delay, time) = sums.entry(namespace).or_default();
                delay.add(&queue.counters.delivery_delay);
                time.add(&queue.counters.time_in_queue);
            }
        }
        let labels = |namespace| vec![("namespace", namespace)];
        let delays = sums.iter();
        let delays = delays.map(|(name, (delay, _))| (labels(*name), Sample::Histogram(*delay)));
        out.write(&families::DELIVERY_DELAY, delays)?;
        let times = sums.iter();
        let times = times.map(|(name, (_, time))| (labels(*name), Sample::Histogram(*time)));
        out.write(&families::TIME_IN_QUEUE, times)
    }

    /// Returns a metric's value of each shard.
    fn of_each(
        &self,
        value: fn(&ShardReport) -> Sample,
    ) -> impl Iterator<Item = (Labels<'_>, Sample)> {
        let shards = self.shards.iter();
        shards.map(move |shard| (shard.labels(), value(&shard.report)))
    }

    /// Returns when the oldest message that waits was enqueued, of each queue that has one.
    fn oldest(&self) -> impl Iterator<Item = (Labels<'_>, Sample)> {
        self.queues().filter_map(|(labels, queue)| {
            let seconds = queue.oldest?.as_millis() / 1_000;
            Some((labels, Sample::Number(seconds.cast_unsigned())))
        })
    }

    /// Returns the queues of all entities, and the sums of those that are not told one by one.
    fn queues(&self) -> impl Iterator<Item = (Labels<'_>, &QueueStatistics)> {
        let all = self
            .shards
            .iter()
            .map(|shard| &shard.report.statistics.gateway.namespaces);
        all.flat_map(|found| {
            let each = found.entities.iter().flat_map(|entity| {
                let queues = entity.queues.iter();
                queues.map(move |(kind, queue)| (labels_of(entity, *kind), queue))
            });
            let others = found.others.iter().map(|((namespace, kind), queue)| {
                let labels = vec![
                    ("namespace", namespace.as_str()),
                    ("entity", OTHERS),
                    ("kind", OTHERS),
                    ("sub_queue", sub_queue(*kind)),
                ];
                (labels, queue)
            });
            each.chain(others)
        })
    }
}

impl ShardScrape {
    fn labels(&self) -> Labels<'_> {
        vec![("shard", &self.name)]
    }
}

fn labels_of(entity: &EntityStatistics, queue: SubQueue) -> Labels<'_> {
    let kind = match entity.kind {
        EntityKind::Queue => "queue",
        EntityKind::Topic => "topic",
        EntityKind::Subscription => "subscription",
    };
    vec![
        ("namespace", entity.namespace.as_str()),
        ("entity", entity.path.as_str()),
        ("kind", kind),
        ("sub_queue", sub_queue(queue)),
    ]
}

const fn sub_queue(kind: SubQueue) -> &'static str {
    match kind {
        SubQueue::Main => "",
        SubQueue::DeadLetter => "dead_letter",
        SubQueue::TransferDeadLetter => "transfer_dead_letter",
    }
}

fn with<'a>(mut labels: Labels<'a>, name: &'static str, value: &'a str) -> Labels<'a> {
    labels.push((name, value));
    labels
}
