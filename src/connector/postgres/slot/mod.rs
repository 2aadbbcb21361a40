//! Replication slots: making one, looking at it, and dropping it.

mod claim;
mod creation;
mod slot_state;
#[cfg(test)]
mod tests;

pub(super) use claim::SlotClaim;
pub(super) use creation::{HeldSlot, NewSlot, create_slot};
#[cfg(test)]
pub(super) use slot_state::WalStatus;
pub(super) use slot_state::{SlotState, WAYS_ON, WAYS_PAST_A_CHANGE, drop_slot, inspect_slot};
