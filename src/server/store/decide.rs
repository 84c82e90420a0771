//! Which server takes which namespace, and which gives one away: decisions without I/O, which servers with the same view make
//! alike. Where views differ the fence decides.

use std::collections::BTreeMap;

/// A namespace, as one look at the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: i64,
    /// The live server that owns it.
    pub(super) owner: Option<String>,
    /// Messages a second, of late.
    pub(super) rate: i64,
    /// It is left alone.
    pub(super) is_quarantined: bool,
}

/// How much a namespace weighs: one for being there, and one for each so many messages a second.
const MESSAGES_PER_WEIGHT: i64 = 1_000;

fn weight(namespace: &Seen) -> i64 {
    1 + namespace.rate.max(0) / MESSAGES_PER_WEIGHT
}

/// Returns what each live server carries.
fn loads<'a>(live: &'a [String], namespaces: &[Seen]) -> BTreeMap<&'a str, i64> {
    let mut loads: BTreeMap<&str, i64> = live.iter().map(|name| (&name[..], 0)).collect();
    for namespace in namespaces {
        let owner = namespace.owner.as_deref();
        if let Some(load) = owner.and_then(|owner| loads.get_mut(owner)) {
            *load += weight(namespace);
        }
    }
    loads
}

/// Returns the namespaces without an owner that this server takes: each goes to the server that carries least.
pub(super) fn to_take(own: &str, live: &[String], namespaces: &[Seen]) -> Vec<i64> {
    let mut loads = loads(live, namespaces);
    let mut taken = Vec::new();
    let free = namespaces.iter().filter(|it| it.owner.is_none());
    for namespace in free.filter(|it| !it.is_quarantined) {
        let least = loads.iter_mut().min_by_key(|(name, load)| (**load, **name));
        let Some((name, load)) = least else {
            break;
        };
        *load += weight(namespace);
        if *name == own {
            taken.push(namespace.id);
        }
    }
    taken
}

/// Returns the namespaces that this server gives away, so many at most, because others carry so much less that the difference gets
/// smaller by that. The lightest that serve go first.
pub(super) fn to_give(own: &str, live: &[String], namespaces: &[Seen], most: usize) -> Vec<i64> {
    let mut after = namespaces.to_vec();
    let mut given = Vec::new();
    while given.len() < most
        && let Some(id) = next_to_give(own, live, &after)
    {
        let least = loads(live, &after)
            .into_iter()
            .min_by_key(|(_, load)| *load);
        let least = least.map(|(name, _)| name.to_owned());
        for namespace in after.iter_mut().filter(|it| it.id == id) {
            namespace.owner.clone_from(&least);
        }
        given.push(id);
    }
    given
}

fn next_to_give(own: &str, live: &[String], namespaces: &[Seen]) -> Option<i64> {
    if namespaces
        .iter()
        .any(|it| it.owner.is_none() && !it.is_quarantined)
    {
        return None;
    }
    let loads = loads(live, namespaces);
    let (mine, least) = (*loads.get(own)?, *loads.values().min()?);
    let mut own = namespaces
        .iter()
        .filter(|it| it.owner.as_deref() == Some(own))
        .collect::<Vec<_>>();
    own.sort_by_key(|it| (weight(it), it.id));
    let found = own.into_iter().find(|it| weight(it) < mine - least);
    found.map(|it| it.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(id: i64, owner: Option<&str>, rate: i64) -> Seen {
        Seen {
            id,
            owner: owner.map(str::to_owned),
            rate,
            is_quarantined: false,
        }
    }

    fn servers(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_free_namespace_has_one_server_that_takes_it_and_all_carry_alike() {
        let live = servers(&["a", "b", "c"]);
        let mut all: Vec<Seen> = (0..30).map(|id| seen(id, None, 0)).collect();
        all.push(seen(30, Some("a"), 9_500));
        let taken = |own: &str| to_take(own, &live, &all);
        let (a, b, c) = (taken("a"), taken("b"), taken("c"));
        assert_eq!((a.len(), b.len(), c.len()), (4, 13, 13));
        let mut sum = [a, b, c].concat();
        sum.sort_unstable();
        assert_eq!(sum, (0..30).collect::<Vec<_>>());
        assert!(taken("d").is_empty(), "it is not alive");
    }

    #[test]
    fn a_namespace_in_quarantine_is_left_alone() {
        let live = servers(&["a"]);
        let mut one = seen(1, None, 0);
        one.is_quarantined = true;
        assert!(to_take("a", &live, &[one]).is_empty());
    }

    #[test]
    fn namespaces_move_to_a_server_that_is_new_until_it_carries_as_much_and_no_further() {
        let live = servers(&["a", "b"]);
        let mut all: Vec<Seen> = (0..9).map(|id| seen(id, Some("a"), 0)).collect();
        let mut moves = 0;
        while let [id] = to_give("a", &live, &all, 1)[..] {
            moves += 1;
            let given = all.iter_mut().find(|it| it.id == id).unwrap();
            given.owner = None;
            assert!(to_give("a", &live, &all, 9).is_empty(), "it is on its way");
            assert_eq!(to_take("b", &live, &all), [id]);
            let given = all.iter_mut().find(|it| it.id == id).unwrap();
            given.owner = Some("b".to_owned());
            assert!(
                to_give("b", &live, &all, 9).is_empty(),
                "nothing comes back"
            );
        }
        assert_eq!(moves, 4);
        let all: Vec<Seen> = (0..9).map(|id| seen(id, Some("a"), 0)).collect();
        assert_eq!(to_give("a", &live, &all, 3), [0, 1, 2]);
        assert_eq!(
            to_give("a", &live, &all, 9),
            [0, 1, 2, 3],
            "no more than that"
        );
    }

    #[test]
    fn one_that_is_heavier_than_the_difference_stays() {
        let live = servers(&["a", "b"]);
        let all = [seen(1, Some("a"), 50_000)];
        assert!(to_give("a", &live, &all, 9).is_empty());
        let all = [seen(1, Some("a"), 50_000), seen(2, Some("a"), 0)];
        assert_eq!(to_give("a", &live, &all, 9), [2], "the light one");
    }
}
