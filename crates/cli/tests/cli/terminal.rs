//! A terminal for tests: what a program shows there is read, and what a person would say is written.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::Stdio,
    sync::mpsc::{Receiver, channel},
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::{FdFlags, fcntl_setfd},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

pub(crate) struct Terminal {
    keyboard: File,
    name: std::ffi::CString,
    /// Held open, so that the screen does not end before the program has begun.
    end: Option<OwnedFd>,
    screen: Receiver<Vec<u8>>,
    shown: Vec<u8>,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        // Tests beside this one start programs, which must not hold the terminal open.
        fcntl_setfd(&ours, FdFlags::CLOEXEC).expect("it is closed in programs");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it can be used");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("it has a size");
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone().expect("it is read, too");
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when the last program has closed it.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut terminal = Self { keyboard, name, end: None, screen, shown: Vec::new() };
        terminal.end = Some(terminal.program_end());
        terminal
    }

    /// What a program is given.
    pub(crate) fn end(&self) -> Stdio {
        self.program_end().into()
    }

    fn program_end(&self) -> OwnedFd {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        open(&self.name, flags, Mode::empty()).expect("its other end")
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("it is heard");
    }

    /// Reads until this is shown, and gives and forgets all up to its end.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let end = loop {
            let place = self.shown.windows(text.len()).position(|window| window == text.as_bytes());
            match place {
                Some(place) => break place + text.len(),
                None => self.more().await,
            }
        };
        let read: Vec<u8> = self.shown.drain(..end).collect();
        String::from_utf8_lossy(&read).into_owned()
    }

    async fn more(&mut self) {
        match self.screen.try_recv() {
            Ok(bytes) => self.shown.extend(bytes),
            Err(std::sync::mpsc::TryRecvError::Empty) => tokio::task::yield_now().await,
            Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                panic!("the program went away: {}", String::from_utf8_lossy(&self.shown))
            }
        }
    }

    /// All that was shown since, once the program has ended.
    pub(crate) async fn rest(mut self) -> String {
        self.end = None;
        while let Ok(bytes) = self.screen.recv() {
            self.shown.extend(bytes);
        }
        String::from_utf8_lossy(&self.shown).into_owned()
    }
}
