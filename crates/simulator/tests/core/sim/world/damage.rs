//! Damage on the disk, and what the auditor is shown of it.

use super::*;

impl Harness {
    /// From now on, bytes of the log may be damaged.
    pub(in crate::sim) fn expect_damage(&mut self) {
        self.auditor.keep_deleted();
    }

    /// Damages the bytes of a message on the disk.
    pub(in crate::sim) fn damage_some(&mut self, random: &mut Stream) {
        let bodies = self.auditor.bodies();
        let Some((id, bytes)) = random.pick(&bodies) else {
            return;
        };
        let is_damaged = self.disk.damage(bytes, self.ends.proved, random);
        self.trace
            .note(|| format!("the bytes of m{id} are damaged: {is_damaged}"));
        if is_damaged {
            self.damage[0] += 1;
            self.auditor.damage(*id);
        }
    }

    /// Shows the auditor what comes of damaged bytes that somebody needed.
    pub(super) fn judge_damage(
        &mut self,
        met: Met,
        step: Step,
        told: Vec<Told>,
    ) -> Result<(), Stop> {
        self.trace.note(|| format!("damage is met: {:?}", met.user));
        self.trace
            .note(|| format!("    {told:?} have lost their bytes"));
        if !matches!(step.cause, Why::Damage) {
            return Err(Stop::Wrong("something else comes of damage".to_owned()));
        }
        let sights = self.note(step.sights)?;
        let user = met.user?;
        if let User::Delivery(DamagedDelivery { at, is_drained, .. }) = &user {
            let waiting = self.unreleased.values().flatten();
            let mut drains = waiting.filter(|it| it.at == *at && it.is_drained);
            if *is_drained && drains.next().is_none() {
                return Err(Stop::Wrong(format!("no drain of {at:?} waits")));
            }
        }
        self.damage[1] += told.len();
        let moved = |body: &BodyRef| self.moved_from.contains(&body.position);
        let hit = Hit {
            user,
            moved: met.bodies.iter().any(moved),
        };
        let observed = Observed {
            now: self.now,
            group: step.group,
            sights: &sights,
        };
        let (pins, amended) = self.auditor.hit(observed, hit, told, &self.paths)?;
        if let Some(sight) = met.sight {
            let waiting = self.unreleased.get_mut(&format!("{sight:?}"));
            let unreleased = match (waiting.and_then(VecDeque::pop_front), &sight) {
                (Some(unreleased), _) => unreleased,
                // It is met again in what is left of a response.
                (None, ClientObservation::Answered(at, answer)) => {
                    self.released_amended(*at, answer)?
                }
                (None, sight) => {
                    let text = format!("{sight:?} is not told, and has damaged bytes");
                    return Err(Stop::Wrong(text));
                }
            };
            self.amended
                .extend(amended.map(|amended| (unreleased, amended)));
        }
        self.wait_for(&sights, &pins);
        Ok(())
    }

    /// Takes a response off that lost messages on its way.
    pub(super) fn released_amended(
        &mut self,
        at: LinkKey,
        answer: &Answer,
    ) -> Result<Unreleased, Stop> {
        let mut all = self.amended.iter();
        let found = all.position(|(of, amended)| of.at == at && amended.is_of(answer));
        let found = found.ok_or_else(|| format!("{answer:?} has left, and no step told it"))?;
        let (unreleased, amended) = self.amended.remove(found);
        amended.check(answer)?;
        Ok(unreleased)
    }
}
