//! Plans print as words that read back as the same plan.

use impair::{Action, Clause, Direction, Filter, Plan, Rate, Times, When};
use proptest::prelude::*;
use std::num::NonZeroU64;
use wire::{OpcodeInfo, Psn, Qpn};

#[track_caller]
fn prints(plan: &str, canonical: &str) {
    let parsed = Plan::parse(plan).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(parsed.to_string(), canonical);
    assert_eq!(Plan::parse(canonical).as_ref(), Ok(&parsed));
}

#[test]
fn examples_print_in_one_form() {
    prints(
        "drop 1%; corrupt psn=100 qp=0x12; reorder 3 every 1000",
        "drop 1%; corrupt psn=100 qp=0x12; reorder 3 every 1000",
    );
    prints(
        "drop 1%; corrupt psn=100 qp=0x12; reorder 3 every 1000; duplicate 0.5%; delay 50us 10%; truncate 1%; ce 5%; seed 7",
        "drop 1%; corrupt psn=100 qp=0x12; reorder 3 every 1000; duplicate 0.5%; delay 50us 10%; truncate 1%; ce 5%; seed 7",
    );
    prints("DROP, TX 1.50%", "drop 1.5% tx");
    prints(" seed 0x10 ;;drop\tqp=18 ; ", "drop qp=0x12; seed 16");
    prints("reorder 100%", "reorder 1 100%");
    prints("delay 1500us..2ms 1%", "delay 1500us..2ms 1%");
    prints("delay 0.5s 1%", "delay 500ms 1%");
    prints("corrupt 1 bit psn=7 times 1", "corrupt psn=7");
    prints("corrupt 2 bits psn=7 times all rx", "corrupt 2 bits psn=7 rx times all");
    prints("drop opcode=0x11 packet 5", "drop packet 5 opcode=rc_acknowledge");
    prints("truncate to 64 any 0.0001%", "truncate to 64 0.0001% any");
    prints("seed 3", "seed 3");
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Drop),
        Just(Action::Duplicate),
        (1..=u32::MAX).prop_map(Action::Reorder),
        (0..=3_600_000_000_000_u64, 0..=3_600_000_000_000_u64)
            .prop_map(|(a, b)| Action::Delay(a.min(b), a.max(b))),
        (1..=3_u8).prop_map(Action::Corrupt),
        prop_oneof![Just(None), (14..=u16::MAX).prop_map(Some)].prop_map(Action::Truncate),
        Just(Action::Ce),
    ]
}

fn count() -> impl Strategy<Value = NonZeroU64> {
    (1..=u64::MAX).prop_map(|count| NonZeroU64::new(count).unwrap())
}

fn filter() -> impl Strategy<Value = Filter> {
    let opcodes: Vec<_> = OpcodeInfo::all().map(|info| info.opcode).collect();
    let number = 0..=0xFF_FFFF_u32;
    (
        proptest::option::of(number.clone().prop_map(Psn::new)),
        proptest::option::of(number.prop_map(Qpn::new)),
        proptest::option::of(proptest::sample::select(opcodes)),
        proptest::option::of(prop_oneof![Just(Direction::Rx), Just(Direction::Tx)]),
        any::<bool>(),
    )
        .prop_map(|(psn, qp, opcode, direction, any)| {
            let any = any && psn.is_none() && qp.is_none() && opcode.is_none();
            Filter { psn, qp, opcode, direction, any }
        })
}

fn clause() -> impl Strategy<Value = Clause> {
    let when = prop_oneof![
        Just(When::Always),
        (0..=1_000_000_u32).prop_map(|parts| When::Chance(Rate::per_million(parts))),
        count().prop_map(When::Every),
        count().prop_map(When::Packet),
    ];
    let times = prop_oneof![Just(Times::All), count().prop_map(Times::Most)];
    (action(), when, filter(), times).prop_map(|(action, when, filter, times)| {
        // What always strikes has to name a field of the BTH.
        let unnamed = filter.psn.is_none() && filter.qp.is_none() && filter.opcode.is_none();
        let when = if unnamed && when == When::Always { When::Chance(Rate::ONE) } else { when };
        Clause { action, when, filter, times }
    })
}

proptest! {
    #[test]
    fn any_plan_reads_back(
        seed in proptest::option::of(any::<u64>()),
        clauses in proptest::collection::vec(clause(), 1..=16),
    ) {
        let plan = Plan { seed, clauses };
        prop_assert_eq!(Plan::parse(&plan.to_string()), Ok(plan));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        reads_back_or_points(&text)?;
    }

    #[test]
    fn any_words_are_read_or_refused(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..12)) {
        reads_back_or_points(&words.join(" "))?;
    }
}

const WORDS: &[&str] = &[
    "drop",
    "duplicate",
    "reorder",
    "delay",
    "corrupt",
    "truncate",
    "ce",
    "seed",
    ";",
    ";",
    "; ",
    "1%",
    "100%",
    "0.5%",
    "every",
    "packet",
    "times",
    "all",
    "to",
    "bits",
    "rx",
    "tx",
    "any",
    "3",
    "64",
    "0x10",
    "50us",
    "1ms..2ms",
    "psn=1",
    "qp=0x12",
    "opcode=4",
    "opcode=rc_acknowledge",
    "opcode=",
    "psn=",
    "%",
    "=",
    "é",
];

fn reads_back_or_points(text: &str) -> Result<(), TestCaseError> {
    match Plan::parse(text) {
        Ok(plan) => prop_assert_eq!(Plan::parse(&plan.to_string()), Ok(plan)),
        Err(error) => prop_assert_eq!(text.get(error.at()), Some(error.word())),
    }
    Ok(())
}
