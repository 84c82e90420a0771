//! The inputs that fuzzing has found and kept in `fuzz/corpus`, each run once more; and the seeds from which it begins.
//!
//! `make fuzz TARGET=engine TIME=600` looks for new ones. An input that breaks something is kept in the corpus with its fix.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jitney_simulator::fuzzing::{TARGETS, conversation_input, engine_input};

use crate::{engine, transcript};

/// What one input may take, on a busy machine and without optimizations.
const TIME_MAX: Duration = Duration::from_secs(20);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files of a directory, in order.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "it is the real time that an input takes"
)]
fn every_input_of_the_corpus_breaks_no_invariant() {
    let mut wrong = Vec::new();
    for target in TARGETS {
        let inputs = files(&root().join("fuzz/corpus").join(target.name));
        assert!(!inputs.is_empty(), "{} has no corpus", target.name);
        for path in inputs {
            let input = fs::read(&path).unwrap();
            let began = Instant::now();
            let is_broken = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err();
            if is_broken || TIME_MAX < began.elapsed() {
                wrong.push((path, began.elapsed()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The conversations of the transcripts and dialogues, and the requests of the SDKs' administration clients, as inputs. With
/// `FUZZ_SEEDS=DIRECTORY` they are written there, for fuzzing to begin with.
#[test]
fn every_seed_breaks_no_invariant() {
    let into = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from);
    let seeds = seeds();
    assert!(seeds.len() > 150, "only {} seeds", seeds.len());
    for (number, (name, input)) in seeds.iter().enumerate() {
        let target = TARGETS.iter().find(|target| target.name == *name).unwrap();
        (target.run)(input);
        if let Some(into) = &into {
            let directory = into.join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(format!("seed-{number}")), input).unwrap();
        }
    }
}

/// Returns inputs with the names of their targets.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = Vec::new();
    for said in transcript::said() {
        let input = conversation_input(said.iter().map(Vec::as_slice));
        seeds.push(("conversations", input));
    }
    for said in engine::corpus().into_iter().chain(transcript::said()) {
        seeds.push(("engine", engine_input(said.iter().map(Vec::as_slice))));
        // A frame's payload: a message, and a request to one of the nodes.
        for frame in said.iter().filter(|frame| 40 < frame.len()) {
            let at = frame
                .windows(3)
                .position(|w| matches!(w, [0, 0x53, 0x70..=0x78]));
            let Some(payload) = at.map(|at| &frame[at..]) else {
                continue;
            };
            seeds.push(("messages", payload.to_vec()));
            for node in 0..6 {
                seeds.push(("requests", [&[node], payload].concat()));
            }
        }
    }
    for path in files(&root().join("crates/gateway/src/admin/tests/requests")) {
        let request = fs::read_to_string(path).unwrap();
        let (head, body) = request.split_once("\n\n").unwrap_or((&request, ""));
        let line = head.lines().next().unwrap_or_default();
        let input = [line.as_bytes(), b"\xfe\xed", body.as_bytes()].concat();
        seeds.push(("administration", input));
    }
    let configuration = fs::read(root().join("interop-tests/config.json")).unwrap();
    seeds.push(("configuration", configuration));
    for text in [
        "a LIKE 'a!%%' ESCAPE '!' AND sys.Label IN ('x', 'label')\u{0}SET b = a + 1; REMOVE c",
        "JMSPriority BETWEEN 1 AND 9 OR NOT (a IS NULL)\u{0}SET sys.Label = 'x'",
        "EXISTS(d) AND [f] <> 0x7B AND -c < .5e3 % 2\u{0}",
        "user.e = @p OR newid() <> sys.[MessageId]\u{0}SET user.x = TRUE",
    ] {
        let (condition, action) = text.split_once('\u{0}').unwrap();
        let input = [condition.as_bytes(), b"\xfe\xed", action.as_bytes()].concat();
        seeds.push(("rules", input));
    }
    for text in [
        "$.order[?@.total > 100 && length(@.lines) == 2]\u{0}{\"order\": [{\"total\": 101, \"lines\": [1, 2]}]}\u{0}{{body:/order/0}}",
        "$..[?@.a != $[0] || count(@.*) < 1]['b', 0, ::2]\u{0}[1, {\"a\": 2, \"b\": []}]\u{0}<{{body}}{{property:color}}>",
    ] {
        let input: Vec<&[u8]> = text.split('\u{0}').map(str::as_bytes).collect();
        seeds.push(("searches", input.join(&b"\xfe\xed"[..])));
    }
    seeds
}
