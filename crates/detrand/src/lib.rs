//! Entropy with a seed, for tests that must run the same way twice.
//!
//! The hash maps of std order their entries by keys that come from the machine, and so does whatever
//! takes [`RandomState`](std::collections::hash_map::RandomState) for a source of chance: the jitter of
//! tower's and kube's retries, tokio's choice among the branches of a `select!`. std asks the function
//! `getrandom` of libc, once a thread. A program that links this crate (a test) gets the function from
//! here: in a thread of [`with_seed`] its bytes come from the seed, in all others from the kernel.
//! `fastrand`, which kube's back-off uses, has a seed of its own for each thread; it is set, too.
//!
//! What does not come from std stays as it is: the keys of `ahash`, with which kube's reflector stores
//! its objects, depend on addresses. Sort what you read from one.
//!
//! This is the one crate of the workspace with unsafe code, and nothing that is shipped depends on it.

/// Runs a closure, in a thread of its own, whose entropy comes from a seed.
pub fn with_seed<T: Send>(seed: u64, run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // Before anything in this thread makes a hash map.
            source::seed(seed);
            fastrand::seed(seed);
            run()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(target_os = "linux")]
mod source {
    #![expect(unsafe_code, reason = "a function of libc is replaced, and its memory filled")]

    use std::cell::Cell;
    use std::ffi::{c_uint, c_void};

    thread_local! {
        /// The state of this thread's `SplitMix64`, if it has a seed.
        static STATE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub(super) fn seed(seed: u64) {
        // The linker takes this crate's function only where something refers to it.
        let function: unsafe extern "C" fn(_, _, _) -> _ = getrandom;
        std::hint::black_box(function);
        STATE.set(Some(seed));
    }

    fn next(state: u64) -> u64 {
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `getrandom(2)`, for the whole program.
    ///
    /// # Safety
    /// `buffer` must be valid for writes of `length` bytes.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
        let Ok(Some(mut state)) = STATE.try_with(Cell::get) else {
            // SAFETY: the caller's promise is what the kernel asks for.
            let done = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
            return isize::try_from(done).unwrap_or(-1);
        };
        // SAFETY: the caller promises that these bytes can be written. They are initialised first, for
        // a slice must be.
        let bytes = unsafe {
            std::ptr::write_bytes(buffer.cast::<u8>(), 0, length);
            std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length)
        };
        for chunk in bytes.chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            for (to, from) in chunk.iter_mut().zip(next(state).to_le_bytes()) {
                *to = from;
            }
        }
        STATE.set(Some(state));
        isize::try_from(length).unwrap_or(-1)
    }
}

#[cfg(not(target_os = "linux"))]
mod source {
    /// Other systems have other sources; there only `fastrand` gets its seed.
    pub(super) fn seed(_: u64) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::collections::HashSet;

    use super::with_seed;

    /// The order in which a hash set of std shows a few numbers.
    fn order() -> Vec<u32> {
        (0..50).collect::<HashSet<u32>>().into_iter().collect()
    }

    #[test]
    fn equal_seeds_give_equal_orders() {
        assert_eq!(with_seed(1, order), with_seed(1, order));
        assert_ne!(with_seed(1, order), with_seed(2, order));
        assert_eq!(with_seed(1, || fastrand::u64(..)), with_seed(1, || fastrand::u64(..)));
    }

    #[test]
    fn other_threads_have_the_entropy_of_the_machine() {
        let other = || std::thread::spawn(order).join().unwrap();
        assert_ne!(with_seed(1, other), with_seed(1, other));
    }
}
