/// How far two ships may be apart.
pub const SAFE_DISTANCE: f64 = 1.5;
