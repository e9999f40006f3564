//! Which programs `serve` serves over rdma_cm, as flags say it.

use rockhopper::programs::{Messages, Program, ServiceOptions};
use std::str::FromStr;

/// Programs and their ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs(pub Vec<(Program, u16)>);

impl FromStr for Programs {
    type Err = String;

    fn from_str(text: &str) -> Result<Programs, String> {
        let programs = match text {
            "all" => ServiceOptions::default().programs,
            "none" => Vec::new(),
            some => some.split(',').map(program).collect::<Result<Vec<_>, _>>()?,
        };
        for (index, (program, port)) in programs.iter().enumerate() {
            let same = |(other, number): &&(Program, u16)| number == port && other.space() == program.space();
            if let Some((other, _)) = programs[..index].iter().find(same) {
                return Err(format!("{other} and {program} cannot both have port {port}: give one another"));
            }
        }
        Ok(Programs(programs))
    }
}

fn program(text: &str) -> Result<(Program, u16), String> {
    let (name, port) = match text.split_once('=') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let program: Program = name.parse()?;
    let port = port.map(|port| match port.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err(format!("{port:?} is no port: it is a number from 1 to 65535")),
    });
    Ok((program, port.transpose()?.unwrap_or(program.port())))
}

/// Longest message, and most of them.
const MAX_SIZE: usize = 1 << 20;
const MAX_COUNT: u32 = 1_000_000;

/// `10x100`: ten messages of a hundred bytes.
pub fn messages(text: &str) -> Result<Messages, String> {
    let parts =
        text.split_once('x').and_then(|(count, size)| Some((count.parse().ok()?, size.parse().ok()?)));
    match parts {
        Some((count, size)) if count <= MAX_COUNT && size <= MAX_SIZE => Ok(Messages { count, size }),
        Some(_) => Err(format!("at most {MAX_COUNT} messages of {MAX_SIZE} bytes are sent")),
        None => Err("messages are a count, an x and their size, like 10x100".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Programs>().map(|programs| programs.0);
        assert_eq!(read("none"), Ok(vec![]));
        assert_eq!(read("all").unwrap().len(), Program::ALL.len());
        assert_eq!(read("rping"), Ok(vec![(Program::Rping, 7174)]));
        // The same number in two port spaces is two ports.
        let both = vec![(Program::Rping, 7174), (Program::Udaddy, 7174), (Program::Perf, 9)];
        assert_eq!(read("rping,udaddy,perf=9"), Ok(both));
        for wrong in
            ["", "ping", "rping=", "rping=0", "rping=65536", "rping,", "rping=9,perf=9", "rping,rping"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_read_as_people_write_them() {
        assert_eq!(messages("3x0"), Ok(Messages { count: 3, size: 0 }));
        for wrong in ["", "3", "x", "3x", "-1x2", "3x1048577", "1000001x1"] {
            assert!(messages(wrong).is_err(), "{wrong}");
        }
    }
}
