//! Calls that only read, made in this process: no process is started, which is most of the time that a list takes.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use sessile::World;
use tokio::sync::OwnedSemaphorePermit;

use super::capture::CaptureBuffer;
use super::invocation::{CallOutput, Invocation, RESULT};
use crate::dispatch::run_in_process;
use crate::output::OutputBuffers;

/// Makes a call on a blocking thread. The slot is released when the call ends, even if its caller was canceled.
pub(super) async fn read(invocation: &Invocation, place: OwnedSemaphorePermit) -> io::Result<CallOutput> {
    let args: Vec<OsString> = std::iter::once("sessile")
        .chain(invocation.args.iter().map(String::as_str))
        .map(Into::into)
        .collect();
    let (without, directory) = (invocation.without.clone(), invocation.directory.clone());
    let called = tokio::task::spawn_blocking(move || {
        let _place = place;
        // As in a process of its own, whose streams are pipes.
        let mut world = World::from_process().without_stream_terminals();
        if let Some(variable) = without {
            world = world.without_variable(&variable);
        }
        if let Some(directory) = directory {
            world = world.with_cwd(directory);
        }
        let buffers = Arc::<OutputBuffers>::default();
        run_in_process(&world, &args, Arc::clone(&buffers));
        buffers.take()
    });
    let (out, err) = called.await.map_err(io::Error::other)?;
    let kept = |text: &str| {
        let mut buffer = CaptureBuffer::new(RESULT);
        buffer.take(text.as_bytes());
        buffer
    };
    Ok(CallOutput { status: None, out: kept(&out), err: kept(&err), report: None })
}
