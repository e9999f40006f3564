//! What is told of a run: text, JSON, pcapng.

use crate::cli::failure::Failure;
use crate::cli::out::say;
use conform::{Direction, LoggedPacket, Rule, RuleReport, Verdict};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// How many rules ended so.
pub fn count(reports: &[RuleReport], verdict: Verdict) -> usize {
    reports.iter().filter(|report| report.verdict == verdict).count()
}

/// A rule that was not played to its end.
pub fn empty(rule: &Rule, verdict: Verdict, why: String) -> RuleReport {
    RuleReport {
        id: rule.id.clone(),
        title: rule.title.clone(),
        fact: rule.fact.clone(),
        verdict,
        why,
        by_time: false,
        packets: Vec::new(),
    }
}

/// One rule as text, with its packets when they matter.
pub fn tell(report: &RuleReport, verbose: bool) {
    let RuleReport { id, title, fact, verdict, why, packets, .. } = report;
    if *verdict == Verdict::Passed && !verbose {
        return;
    }
    say(format_args!("{:8} {id}: {title} ({fact})", verdict.name()));
    if !why.is_empty() {
        say(format_args!("         {why}"));
    }
    if *verdict == Verdict::Failed || verbose {
        packets.iter().for_each(|packet| say(format_args!("         {}", line(packet))));
    }
}

/// A packet in one line.
fn line(packet: &LoggedPacket) -> String {
    let arrow = match packet.direction {
        Direction::ToDevice => "peer   ->",
        Direction::FromDevice => "device <-",
    };
    format!("{:10.3} ms {arrow} {}", packet.at_ns as f64 / 1e6, packet.words)
}

/// The whole run as JSON.
pub fn json(device: &str, reports: &[RuleReport]) -> Value {
    let rules: Vec<Value> = reports
        .iter()
        .map(|report| {
            json!({
                "id": report.id, "title": report.title, "fact": report.fact, "verdict": report.verdict.name(),
                "why": report.why, "packets": report.packets.iter().map(line).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "device": device,
        "passed": count(reports, Verdict::Passed),
        "failed": count(reports, Verdict::Failed),
        "open": count(reports, Verdict::Open),
        "skipped": count(reports, Verdict::Skipped),
        "rules": rules,
    })
}

/// The packets of a rule as `DIRECTORY/ID.pcapng`, each with its words as a comment.
pub fn save(directory: &Path, report: &RuleReport) -> Result<(), Failure> {
    let path = directory.join(format!("{}.pcapng", report.id));
    let cannot = |why: String| {
        Failure::setup(format!("{} cannot be written: {why}; choose another --pcapng", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|why| cannot(why.to_string()))?;
    let file = File::create(&path).map_err(|why| cannot(why.to_string()))?;
    let mut writer = PcapNgWriter::new(file).map_err(|why| cannot(why.to_string()))?;
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 0,
        // Nanoseconds.
        options: vec![InterfaceDescriptionOption::IfTsResol(9)],
    };
    writer.write_pcapng_block(interface).map_err(|why| cannot(why.to_string()))?;
    for packet in &report.packets {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(packet.at_ns),
            original_len: packet.frame.len() as u32,
            data: Cow::Borrowed(&packet.frame),
            options: vec![EnhancedPacketOption::Comment(Cow::Owned(line(packet)))],
        };
        writer.write_pcapng_block(block).map_err(|why| cannot(why.to_string()))?;
    }
    Ok(())
}
