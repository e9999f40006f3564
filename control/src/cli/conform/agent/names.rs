//! What rules call rights, states and statuses, and what they are here.

use super::refused;
use conform::{CallError, Completion};
use rockhopper::{Access, QpState};

pub(super) fn access(names: &[String]) -> Result<Access, CallError> {
    names.iter().try_fold(Access::empty(), |all, name| {
        Ok(all
            | match name.as_str() {
                "local_write" => Access::LOCAL_WRITE,
                "remote_write" => Access::REMOTE_WRITE,
                "remote_read" => Access::REMOTE_READ,
                "remote_atomic" => Access::REMOTE_ATOMIC,
                "flush_global" => Access::FLUSH_GLOBAL,
                "flush_persistent" => Access::FLUSH_PERSISTENT,
                "mw_bind" => Access::MW_BIND,
                "zero_based" => Access::ZERO_BASED,
                other => return Err(CallError::Unsupported(other.into())),
            })
    })
}

const STATES: [(QpState, &str); 7] = [
    (QpState::Reset, "reset"),
    (QpState::Init, "init"),
    (QpState::Rtr, "rtr"),
    (QpState::Rts, "rts"),
    (QpState::Sqd, "sqd"),
    (QpState::Sqe, "sqe"),
    (QpState::Err, "error"),
];

pub(super) fn state_name(state: QpState) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("unknown", |(_, name)| name)
}

pub(super) fn state_of(name: &str) -> Result<QpState, CallError> {
    let found = STATES.iter().find(|(_, known)| *known == name);
    found.map(|(state, _)| *state).ok_or_else(|| refused(format!("there is no state {name}")))
}

pub(super) fn completion(cqe: &rockhopper::Cqe) -> Completion {
    Completion {
        id: cqe.wr_id,
        status: status_name(cqe.status).into(),
        len: cqe.byte_len,
        imm: cqe.imm.map(u32::from_be_bytes),
        invalidated: cqe.invalidated.map(|key| key.value()),
        src_qp: cqe.src_qp.value(),
    }
}

fn status_name(status: rockhopper::WcStatus) -> &'static str {
    use rockhopper::WcStatus as S;
    match status {
        S::Success => "success",
        S::LocLenErr => "loc_len_err",
        S::LocQpOpErr => "loc_qp_op_err",
        S::LocProtErr => "loc_prot_err",
        S::WrFlushErr => "wr_flush_err",
        S::MwBindErr => "mw_bind_err",
        S::BadRespErr => "bad_resp_err",
        S::LocAccessErr => "loc_access_err",
        S::RemInvReqErr => "rem_inv_req_err",
        S::RemAccessErr => "rem_access_err",
        S::RemOpErr => "rem_op_err",
        S::RetryExcErr => "retry_exc_err",
        S::RnrRetryExcErr => "rnr_retry_exc_err",
        S::RemAbortErr => "rem_abort_err",
        S::FatalErr => "fatal_err",
        S::GeneralErr => "general_err",
    }
}
