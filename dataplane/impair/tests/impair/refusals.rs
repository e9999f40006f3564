//! A plan that cannot be read is refused at the word that is wrong.

use impair::Plan;

#[track_caller]
fn refused(plan: &str, word: &str, remedy: &str) {
    let error = Plan::parse(plan).expect_err(plan);
    assert_eq!(error.word(), word, "{plan}: {error}");
    assert_eq!(plan.get(error.at()), Some(word), "it points at the word");
    assert!(error.remedy().contains(remedy), "{plan}: {error}");
    assert!(!error.to_string().contains('\n'), "one sentence");
}

#[test]
fn what_is_no_action_is_told_what_there_is() {
    refused("drop 1%; dorp 2%", "dorp", "drop, duplicate, reorder, delay, corrupt, truncate, ce or seed");
    refused("1% drop", "1%", "say drop");
}

#[test]
fn a_clause_has_to_say_which_frames() {
    refused("drop", "drop", "1%");
    refused("reorder 3", "reorder", "every 1000");
    refused("drop rx", "drop", "100% means all");
    refused("drop any times 3", "drop", "100% means all");
}

#[test]
fn numbers_have_ranges() {
    refused("drop 101%", "101%", "0% to 100%");
    refused("drop 1.23456%", "1.23456%", "four digits");
    refused("drop -1%", "-1%", "0% to 100%");
    refused("drop %", "%", "0% to 100%");
    refused("drop every 0", "0", "a whole number from 1");
    refused("drop packet x", "x", "a whole number from 1");
    refused("drop psn=0x1000000", "0x1000000", "0 to 0xffffff");
    refused("drop qp=", "", "");
    refused("corrupt 4 bits 1%", "4", "1 to 0x3");
    refused("reorder 0 1%", "0", "from 1");
    refused("truncate to 13 1%", "13", "from 14");
    refused("drop psn=+1", "+1", "0 to 0xffffff");
    refused("drop times 0 1%", "0", "from 1");
    refused("seed x", "x", "a whole number");
}

#[test]
fn times_have_units() {
    for time in ["50", "50 us", "5m", "1.2345us", "2us..1us", "us", "-1us", "2h", "3601s"] {
        let word = time.split(' ').next().unwrap();
        refused(&format!("delay {time} 1%"), word, "50us, 1.5ms or 2s");
    }
    refused("delay", "delay", "delay 50us 10%");
}

#[test]
fn what_lacks_its_number_is_told_so() {
    refused("drop every", "every", "every 1000");
    refused("drop 1% times", "times", "times 3");
    refused("truncate to", "to", "truncate to 64");
    refused("seed", "seed", "seed 7");
    refused("corrupt 2 1%", "2", "corrupt 2 bits");
}

#[test]
fn nothing_is_said_twice() {
    refused("drop 1% every 3", "every", "leave one");
    refused("drop rx tx 1%", "tx", "leave one");
    refused("drop psn=1 psn=2", "psn=2", "two clauses");
    refused("seed 1; seed 2", "seed", "leave one seed");
}

#[test]
fn what_would_have_no_effect_is_refused() {
    refused("drop psn=1 any", "any", "leave it out");
    refused("seed 1 drop", "drop", "`;`");
}

#[test]
fn other_words_are_refused() {
    refused("drop 1% sometimes", "sometimes", "every 1000");
    refused("drop port=3", "port=3", "psn=, qp= or opcode=");
    refused("drop opcode=rc_shout", "rc_shout", "rc_send_only");
    refused("drop opcode=0xff", "0xff", "0x04");
    refused("drop psn = 3", "psn", "psn=100");
}

#[test]
fn a_plan_is_bounded_and_not_empty() {
    refused("", "", "drop 1%");
    refused(" ; ;", "", "drop 1%");
    let long = vec!["drop 1%"; impair::MAX_CLAUSES].join("; ");
    assert_eq!(Plan::parse(&long).unwrap().clauses.len(), impair::MAX_CLAUSES);
    refused(&format!("{long}; ce 1%"), "ce", "16 clauses");
}

#[test]
fn the_sentence_says_where() {
    let error = Plan::parse("drop 1%; crash 2%").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`crash` at character 10 of the impairment plan is nothing that can happen to a frame: \
         say drop, duplicate, reorder, delay, corrupt, truncate, ce or seed"
    );
}
