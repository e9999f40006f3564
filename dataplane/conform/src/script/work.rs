//! Lines about queues and windows: receives, requests, their completions.

use super::names::Names;
use super::steps::{all_rights, rights};
use super::value::{expr, number, number_below, time};
use super::words::{Complaint, Words, check_name, one_of};
use super::{CompleteSpec, Queue, SrqSetup, StepKind, WorkSpec};
use crate::device::Side;

const STATUSES: &[&str] = &[
    "success",
    "loc_len_err",
    "loc_qp_op_err",
    "loc_prot_err",
    "wr_flush_err",
    "mw_bind_err",
    "bad_resp_err",
    "loc_access_err",
    "rem_inv_req_err",
    "rem_access_err",
    "rem_op_err",
    "retry_exc_err",
    "rnr_retry_exc_err",
    "rem_abort_err",
    "fatal_err",
    "general_err",
];
const OPS: &[&str] = &[
    "send",
    "send_imm",
    "send_inv",
    "write",
    "write_imm",
    "read",
    "cmp_swap",
    "fetch_add",
    "atomic_write",
    "flush",
    "fast_register",
    "local_invalidate",
    "bind",
];
pub(super) fn srq(words: &mut Words, names: &mut Names) -> Result<StepKind, Complaint> {
    let name = words.next("the name of the shared receive queue")?.to_owned();
    check_name(&name)?;
    let depth = words.take_as("depth", |text| number_below(text, 4097))?.unwrap_or(16) as u32;
    let pd = words.take_as("pd", |text| number_below(text, 4))?.unwrap_or(0) as u8;
    let domain = words.take_as("domain", |text| number_below(text, 4))?.map(|domain| domain as u8);
    names.srqs.push(name.clone());
    Ok(StepKind::Srq(SrqSetup { name, depth, pd, domain }))
}

pub(super) fn window(words: &mut Words, names: &mut Names) -> Result<StepKind, Complaint> {
    let name = words.next("the name of the window")?.to_owned();
    check_name(&name)?;
    let kind = words.take_as("type", |text| one_of("type of window", text, &["1", "2"]))?.unwrap_or("1");
    let pd = words.take_as("pd", |text| number_below(text, 4))?.unwrap_or(0) as u8;
    names.windows.push(name.clone());
    Ok(StepKind::Window { name, kind: if kind == "2" { 2 } else { 1 }, pd })
}

/// `arm S 2`, `limit S 0`.
pub(super) fn limit(first: &str, words: &mut Words, names: &Names) -> Result<StepKind, Complaint> {
    let srq = names.srq(words.next("a shared receive queue")?)?;
    let limit = number_below(words.next("a number of receives")?, 4097)? as u32;
    Ok(if first == "arm" { StepKind::Arm { srq, limit } } else { StepKind::Limit { srq, limit } })
}

pub(super) fn receive(words: &mut Words, names: &Names) -> Result<StepKind, Complaint> {
    let queue = match words.take_as("srq", |text| names.srq(text))? {
        Some(srq) => Queue::Srq(srq),
        None => Queue::Qp(names.qp(words, "qp")?),
    };
    let id = number(words.next("the number of the receive")?)?;
    Ok(StepKind::Receive { queue, id, pieces: names.pieces(words)?, refused: words.flag("refused") })
}

pub(super) fn post(words: &mut Words, names: &Names) -> Result<StepKind, Complaint> {
    let qp = names.qp(words, "qp")?;
    let op = one_of("operation", words.next("the operation, like send,")?, OPS)?.to_owned();
    let id = number(words.next("the number of the request")?)?;
    let refused = words.flag("refused");
    let value = |text: &str| names.known(expr(text)?);
    let small = |text: &str| number_below(text, 1 << 32).map(|value| value as u32);
    // A window grants rights of peers only.
    let granted = all_rights().split_off(usize::from(op == "bind"));
    let work = WorkSpec {
        op,
        id,
        pieces: names.pieces(words)?,
        at: words.take_as("at", value)?,
        key: words.take_as("key", value)?,
        len: words.take_as("len", small)?.unwrap_or(0),
        plt: words.take_as("plt", |text| number_below(text, 16))?.unwrap_or(1) as u8,
        sel: words.take_as("sel", |text| number_below(text, 4))?.unwrap_or(0) as u8,
        srqn: words.take_as("srqn", |text| number_below(text, 1 << 24))?.map(|srqn| srqn as u32),
        imm: words.take_as("imm", small)?.unwrap_or(0),
        swap: words.take_as("swap", number)?.or(words.take_as("add", number)?).unwrap_or(0),
        compare: words.take_as("compare", number)?.unwrap_or(0),
        region: words.take_as("region", |text| names.region(text))?,
        window: words.take_as("window", |text| names.window(text))?,
        access: words.take_as("access", rights)?.unwrap_or(granted),
        fence: words.flag("fence"),
        solicited: words.flag("solicited"),
        unsignaled: words.flag("unsignaled"),
        qkey: words.take_as("qkey", small)?.unwrap_or(0x1111_1111),
    };
    Ok(StepKind::Post { qp, work: Box::new(work), refused })
}

pub(super) fn complete(words: &mut Words, names: &Names) -> Result<StepKind, Complaint> {
    // An XRC SRQ has a completion queue of its own.
    let srq = words.take_as("srq", |text| names.srq(text))?;
    let qp = srq.map_or_else(|| names.qp(words, "qp"), Ok)?;
    let side = one_of("side", words.next("send, recv or none")?, &["send", "recv", "none"])?;
    if side == "none" {
        return Ok(StepKind::NoCompletion { qp });
    }
    let id = number(words.next("the number of the request")?)?;
    let statuses = words.next("the status, like success,")?.split('|');
    let statuses = statuses.map(|status| one_of("status", status, STATUSES).map(str::to_owned));
    Ok(StepKind::Complete(Box::new(CompleteSpec {
        qp,
        side: if side == "send" { Side::Send } else { Side::Recv },
        id,
        statuses: statuses.collect::<Result<_, _>>()?,
        len: words.take_as("len", number)?,
        imm: words.take_as("imm", |text| number_below(text, 1 << 32))?.map(|imm| imm as u32),
        invalidated: words.take_as("invalidated", |text| names.known(expr(text)?))?,
        within_ns: words.take_as("within", time)?,
    })))
}
