//! The exchange of `ibv_{rc,uc,ud,srq}_pingpong`.
//!
//! ```text
//! client                              server
//!   a record for each QP ───────────►                           of srq_pingpong always 256
//!                        ◄───────────  a record for each QP     its QPs can receive
//!   "done" and a NUL     ───────────►                           the client's too
//! ```
//!
//! Then SENDs go to and fro until each end has its count, and both close the line.

use super::super::error::RunError;
use super::super::link::LinkError;
use super::content::Looks;
use super::record::{PINGPONG_BYTES, Record};
use super::{Did, PATIENCE, Run};

/// Records of `ibv_srq_pingpong`, most of them empty.
const SRQ_RECORDS: usize = 256;
/// The client's word that it is ready.
const DONE: &[u8] = b"done\0";

impl Run<'_> {
    /// A run with a pingpong.
    pub(super) fn pingpong(&mut self) -> Result<Did, RunError> {
        if self.is_server {
            self.hear_records()?;
            self.say_records()?;
            let word = self.hear(DONE.len())?;
            if word != DONE {
                let said = String::from_utf8_lossy(&word).into_owned();
                return Err(LinkError::Garbled(format!("it says {said:?} instead of \"done\"")).into());
            }
        } else {
            self.say_records()?;
            self.hear_records()?;
            self.link.send_bytes(DONE)?;
        }
        let looks = if self.ends.qps.len() > 1 {
            Looks::Filled { late: self.is_server }
        } else {
            Looks::Echo { late: self.is_server }
        };
        self.ping_pong(looks)
    }

    fn say_records(&mut self) -> Result<(), RunError> {
        let qps = self.ends.qps.len();
        let records = (0..qps).map(|index| self.ends.record(index).to_pingpong());
        let mut bytes: Vec<u8> = records.flatten().collect();
        for _ in qps..self.records() {
            bytes.extend(Record::EMPTY.to_pingpong());
        }
        Ok(self.link.send_bytes(&bytes)?)
    }

    fn hear_records(&mut self) -> Result<(), RunError> {
        for index in 0..self.records() {
            let bytes = self.hear(PINGPONG_BYTES)?;
            if index < self.ends.qps.len() {
                self.ends.connect(&Record::of_pingpong(&bytes)?)?;
            }
        }
        Ok(())
    }

    /// Records that each end says. The program with several QPs has a table of them and says all of it.
    fn records(&self) -> usize {
        if self.ends.qps.len() > 1 { SRQ_RECORDS } else { 1 }
    }

    /// Waits for so many bytes.
    pub(super) fn hear(&mut self, bytes: usize) -> Result<Vec<u8>, RunError> {
        self.link.recv_bytes(bytes, PATIENCE, &mut self.drive)?.ok_or(RunError::Stopped)
    }
}
