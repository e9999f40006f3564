//! Keys that requests give and take away: of regions for fast registration, and of memory windows.

use super::flow::{chance_of, noise};
use crate::endpoint::{EndpointId, Region};
use crate::plan::{Kind, Op, Plan};
use crate::world::World;
use engine::wr::{Bind, FastReg, Remote};
use engine::{Access, MemoryWindow, MwType, SendOp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::RKey;

/// Every key of a plan, by the request that gives it.
pub(super) type Keys = BTreeMap<u32, Grant>;

/// What one request makes reachable.
#[derive(Clone)]
pub(super) struct Grant {
    pub region: Region,
    pub key: RKey,
    /// Where in the region it begins.
    pub begin: u64,
    /// Address of that byte, as the key counts, and bytes from there.
    addr: u64,
    len: u64,
    access: Access,
    window: Option<Arc<MemoryWindow>>,
}

/// Bytes of a fast region.
const FAST_LEN: u64 = 16_384;
/// A key that nobody has.
pub(super) const NO_KEY: RKey = RKey::new(0xFFFF_FF00);

/// Registers, allocates and binds nothing yet: the regions and windows that the plan's requests will need.
pub(super) fn keys(world: &mut World, plan: &Plan, endpoints: &[EndpointId]) -> Keys {
    let mut all = Keys::new();
    for op in plan.ops.iter().filter(|op| op.kind.gives_key()) {
        let end = plan.connections[op.connection as usize].ends[op.from as usize];
        let endpoint = endpoints[end as usize];
        let grant = match op.kind {
            Kind::RegMr => fast(world, plan, op, endpoint),
            _ => {
                let before = op.key_of.and_then(|id| all.get(&id)).and_then(|grant| grant.window.clone());
                window(world, plan, op, endpoint, before)
            }
        };
        all.insert(op.id, grant);
    }
    all
}

fn fast(world: &mut World, plan: &Plan, op: &Op, endpoint: EndpointId) -> Grant {
    let content = noise(plan.seed, 0xFA57_0000 | u64::from(op.id), FAST_LEN as usize);
    let region = world.allocate_fast(endpoint, content);
    let key = RKey::new(region.mr.index() << 8 | 0x3C);
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    Grant { region, key, begin: 0, addr: 0x4000_0000, len: FAST_LEN, access, window: None }
}

/// A bind: of a new window, or of one that was bound before, to a region of its own, in the middle of it.
fn window(
    world: &mut World,
    plan: &Plan,
    op: &Op,
    endpoint: EndpointId,
    before: Option<Arc<MemoryWindow>>,
) -> Grant {
    let mw_type = if op.kind == Kind::BindMw1 { MwType::Type1 } else { MwType::Type2 };
    let window = before.unwrap_or_else(|| world.allocate_window(endpoint, mw_type));
    let (id, len) = (u64::from(op.id), u64::from(op.len));
    let begin = 8 * (1 + chance_of(plan.seed, id, 16, 40));
    let content = noise(plan.seed, 0x3137_0000 | id, (begin + len + 100) as usize);
    let region = world.register(endpoint, content, Access::LOCAL_WRITE | Access::MW_BIND);
    // Another byte than the bind before it had.
    let key = RKey::new(window.key() & !0xFF | (op.id + 1) & 0xFF);
    let mut access = Access::REMOTE_WRITE | Access::REMOTE_READ;
    access.set(Access::REMOTE_ATOMIC, op.grants_atomics());
    let zero_based = mw_type == MwType::Type2 && chance_of(plan.seed, id, 17, 3) == 0;
    access.set(Access::ZERO_BASED, zero_based);
    let addr = if zero_based { 0 } else { region.addr + begin };
    Grant { region, key, begin, addr, len, access, window: Some(window) }
}

impl Grant {
    /// The request that gives the key; with a mistake the range does not lie in the region.
    pub fn request(&self, mistaken: bool) -> SendOp {
        let Some(mw) = &self.window else {
            let Grant { key, addr, len, access, .. } = *self;
            return SendOp::RegMr(Arc::new(FastReg { mr: self.region.mr.clone(), key, addr, len, access }));
        };
        let len = if mistaken { self.region.len + 1 } else { self.len };
        let to = (len > 0).then(|| self.region.binding(self.begin, len, self.access));
        SendOp::BindMw(Arc::new(Bind { mw: mw.clone(), key: self.key, to }))
    }

    /// A place in the region, by this key.
    pub fn remote(&self, offset: u64) -> Remote {
        Remote { addr: self.addr + (offset - self.begin), rkey: self.key }
    }

    /// A place so near to the end that `len` bytes go past it by one. Of a window there is more behind it in its region.
    pub fn past_the_end(&self, len: u32) -> Remote {
        Remote { addr: self.addr + self.len + 1 - u64::from(len), rkey: self.key }
    }
}

/// Whether each window is bound as the model has it: by the last of its requests, unless it is not known whether one was done.
pub(super) fn windows_at_the_end(
    world: &mut World,
    plan: &Plan,
    keys: &Keys,
    done: &BTreeSet<u32>,
    posted: &BTreeSet<u32>,
) -> Result<(), String> {
    for (&first, grant) in keys {
        let Some(window) = &grant.window else { continue };
        let is_first = plan.ops.iter().any(|op| op.id == first && op.key_of.is_none());
        if !is_first {
            continue;
        }
        let of_window = |id: u32| {
            keys.get(&id).and_then(|of| of.window.as_ref()).is_some_and(|of| Arc::ptr_eq(of, window))
        };
        let concerns = |op: &&Op| of_window(op.id) || op.key_of.is_some_and(of_window);
        let requests: Vec<&Op> = plan.ops.iter().filter(concerns).collect();
        let known = requests.iter().all(|op| done.contains(&op.id) || !posted.contains(&op.id));
        let last = requests.iter().rfind(|op| done.contains(&op.id));
        let bound = last.is_some_and(|op| op.kind.gives_key() && op.len > 0);
        if known && window.is_bound() != bound {
            return Err(format!("the window of op {first} is bound: {}", window.is_bound()));
        }
        world.free_window(grant.region.endpoint, window);
        if let Some(held) = keys.values().find(|of| {
            of.window.as_ref().is_some_and(|of| Arc::ptr_eq(of, window)) && of.region.mr.windows() > 0
        }) {
            return Err(format!("a window that is gone holds on to region {:?}", held.region.id));
        }
    }
    Ok(())
}
