//! From words to a plan.

use crate::plan::{ETHERNET, MAX_BITS};
use crate::print::opcode_word;
use crate::words::{Word, Words, clauses};
use crate::{Action, Clause, Direction, Filter, MAX_CLAUSES, Plan, PlanError, Times, When};
use wire::{Opcode, OpcodeInfo, Psn, Qpn};

const ACTIONS: &str = "drop, duplicate, reorder, delay, corrupt, truncate, ce or seed";
const WHICH: &str =
    "1%, every 1000, packet 17, psn=100, qp=0x12, opcode=rc_acknowledge, rx, tx, any or times 3";

pub(crate) fn plan(text: &str) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let mut empty = true;
    for mut words in clauses(text) {
        let Some(first) = words.next() else { continue };
        empty = false;
        if first.is("seed") {
            seed(&mut plan, &first, words)?;
        } else if plan.clauses.len() == MAX_CLAUSES {
            return Err(first.refuse("is one clause too many", format!("say {MAX_CLAUSES} clauses at most")));
        } else {
            plan.clauses.push(clause(&first, words)?);
        }
    }
    if empty {
        return Err(PlanError::new(text, 0..0, "is empty", "say for example `drop 1%`"));
    }
    Ok(plan)
}

fn seed<'a>(plan: &mut Plan, first: &Word<'a>, mut words: Words<'a>) -> Result<(), PlanError> {
    if plan.seed.is_some() {
        return Err(first.refuse("is said twice", "leave one seed"));
    }
    plan.seed = Some(words.need(first, "say `seed 7`")?.number_in(0..=u64::MAX)?);
    match words.next() {
        Some(left) => Err(left.refuse("means nothing behind a seed", "end the clause with `;`")),
        None => Ok(()),
    }
}

fn clause<'a>(first: &Word<'a>, mut words: Words<'a>) -> Result<Clause, PlanError> {
    let action = action(first, &mut words)?;
    let mut said = Said::default();
    while let Some(word) = words.next() {
        said.word(word, &mut words)?;
    }
    if let (Some(any), true) = (&said.any, said.filter.asks_bth()) {
        return Err(any.refuse(
            "has no effect beside psn=, qp= or opcode=, which only RoCE packets have",
            "leave it out",
        ));
    }
    let when = match said.when {
        Some(when) => when,
        None if said.filter.asks_bth() => When::Always,
        None => {
            return Err(
                first.refuse("does not say which frames it means", format!("add {WHICH}; 100% means all"))
            );
        }
    };
    let times = said.times.unwrap_or(Times::unsaid(when, &said.filter));
    Ok(Clause { action, when, filter: said.filter, times })
}

/// The action and its own numbers.
fn action<'a>(first: &Word<'a>, words: &mut Words<'a>) -> Result<Action, PlanError> {
    let mut number = || {
        words.next_if(|word| {
            word.text.bytes().all(|digit| digit.is_ascii_alphanumeric()) && word.number().is_some()
        })
    };
    Ok(match first.text.to_ascii_lowercase().as_str() {
        "drop" => Action::Drop,
        "duplicate" => Action::Duplicate,
        "ce" => Action::Ce,
        "reorder" => match number() {
            Some(frames) => Action::Reorder(frames.number_in(1..=u64::from(u32::MAX))? as u32),
            None => Action::Reorder(1),
        },
        "corrupt" => match number() {
            Some(bits) => {
                let count = bits.number_in(1..=MAX_BITS.into())? as u8;
                words.next_if(|word| word.is("bits") || word.is("bit")).ok_or_else(|| {
                    bits.refuse("is a number of what?", format!("say `corrupt {count} bits`"))
                })?;
                Action::Corrupt(count)
            }
            None => Action::Corrupt(1),
        },
        "delay" => {
            let (least, most) = words.need(first, "say for how long, as in `delay 50us 10%`")?.duration()?;
            Action::Delay(least, most)
        }
        "truncate" => match words.next_if(|word| word.is("to")) {
            Some(to) => {
                let len = words.need(&to, "say to how many bytes, as in `truncate to 64`")?;
                Action::Truncate(Some(len.number_in(ETHERNET as u64..=u64::from(u16::MAX))? as u16))
            }
            None => Action::Truncate(None),
        },
        _ => return Err(first.refuse("is nothing that can happen to a frame", format!("say {ACTIONS}"))),
    })
}

/// What a clause has said of the frames that it means.
#[derive(Default)]
struct Said<'a> {
    when: Option<When>,
    times: Option<Times>,
    filter: Filter,
    any: Option<Word<'a>>,
}

impl<'a> Said<'a> {
    fn word(&mut self, word: Word<'a>, words: &mut Words<'a>) -> Result<(), PlanError> {
        let word = &word;
        let key = word.text.split_once('=').map(|(key, _)| key.to_ascii_lowercase());
        let filter = &mut self.filter;
        match key.as_deref() {
            Some("psn") => return once(&mut filter.psn, Psn::new(word.value().number24()?), word),
            Some("qp") => return once(&mut filter.qp, Qpn::new(word.value().number24()?), word),
            Some("opcode") => return once(&mut filter.opcode, opcode(&word.value())?, word),
            Some(_) => {
                return Err(
                    word.refuse("is no part of a packet that is looked at", "say psn=, qp= or opcode=")
                );
            }
            None => {}
        }
        if let Some(rate) = word.percentage() {
            return once(&mut self.when, When::Chance(rate?), word);
        }
        match word.text.to_ascii_lowercase().as_str() {
            "every" => {
                let count = words.need(word, "say `every 1000`")?.count()?;
                once(&mut self.when, When::Every(count), word)
            }
            "packet" => {
                let count = words.need(word, "say `packet 17`")?.count()?;
                once(&mut self.when, When::Packet(count), word)
            }
            "times" => {
                let most = words.need(word, "say `times 3` or `times all`")?;
                let times = if most.is("all") { Times::All } else { Times::Most(most.count()?) };
                once(&mut self.times, times, word)
            }
            "rx" => once(&mut filter.direction, Direction::Rx, word),
            "tx" => once(&mut filter.direction, Direction::Tx, word),
            "any" => {
                filter.any = true;
                once(&mut self.any, word.clone(), word)
            }
            _ => Err(word.refuse("does not say which frames are meant", format!("say {WHICH}"))),
        }
    }
}

/// Sets what may be said once.
fn once<T>(place: &mut Option<T>, value: T, word: &Word<'_>) -> Result<(), PlanError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => {
            Err(word
                .refuse("says again what the clause has said", "leave one of the two, or make two clauses"))
        }
    }
}

/// An opcode by number, or by its name as it is printed, in one word.
fn opcode(word: &Word<'_>) -> Result<Opcode, PlanError> {
    let wanted = word.text.to_ascii_lowercase();
    let of_number =
        |number: u64| u8::try_from(number).ok().map(Opcode).filter(|opcode| opcode.info().is_some());
    let of_name = || OpcodeInfo::all().find(|info| opcode_word(info) == wanted).map(|info| info.opcode);
    word.number().map_or_else(of_name, of_number).ok_or_else(|| {
        word.refuse("is no opcode", "say its number, as in 0x04, or its name, as in rc_send_only")
    })
}
