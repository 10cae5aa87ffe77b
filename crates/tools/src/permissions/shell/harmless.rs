//! The table of known programs and their harmless arguments: those that run nothing and write nothing beyond
//! the program's purpose. A program, subcommand or option that is not in the table is allowed only by a rule
//! with the exact line.
//!
//! Notation of options: `-abc` for short ones without a value, `-n=` for one with a value, `-n[=]` for one
//! with an optional attached value; `--name`, `--name=` and `--name[=]` likewise; `*` if every option in
//! every version is harmless. Long options must be written in full. The table omits options that name another
//! program, a file to write, a file of settings, or a library to load.

/// The effect of a command on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The command uses no files.
    Says,
    /// The command reads the given files.
    Reads,
    /// The command only reads; the current folder determines which programs it runs and which files it shows.
    ReadsProject,
    /// The command creates, moves or deletes the given files.
    Writes,
    /// The command runs code or settings of the project.
    RunsProject,
}

/// The operands that a command may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    Any,
    /// At most this number of operands.
    Most(usize),
    /// Names of targets or scripts to run: the permission rule contains all of them, or contains none and
    /// there are at most this many.
    Chosen(usize),
    /// Files and folders of the project, and names in them.
    Inside,
    /// A time format: `+%s`.
    TimeFormat,
    /// A format string and its values.
    Format,
    /// A sed script that can only print, and files.
    Printing,
    /// An awk script that can only print, and files.
    Columns,
}

/// One row of [`TABLE`]: programs with the same effect, options and operands.
pub(crate) struct Harmless {
    /// The programs, each with its subcommand if it has one, separated by `, `.
    pub(super) words: &'static str,
    pub(crate) effect: Effect,
    pub(super) options: &'static str,
    pub(super) operands: Operands,
    /// Options allowed after `--`, if the program passes them to another program.
    pub(super) behind: Option<&'static str>,
    /// True if options are whole words with one hyphen: `-name`.
    pub(super) whole: bool,
    /// True if a permission rule must contain both the program and its subcommand, not only the program.
    pub(super) is_named: bool,
    /// The options that make the program open all files in a folder (`*`: it always does), and the number of
    /// its operands that are not paths.
    pub(super) walks: (&'static str, usize),
}

impl Harmless {
    const fn with_operands(mut self, operands: Operands) -> Self {
        self.operands = operands;
        self
    }

    const fn behind(mut self, options: &'static str) -> Self {
        self.behind = Some(options);
        self
    }

    const fn whole_words(mut self) -> Self {
        self.whole = true;
        self
    }

    const fn named(mut self) -> Self {
        self.is_named = true;
        self
    }

    const fn walks(mut self, options: &'static str, patterns: usize) -> Self {
        self.walks = (options, patterns);
        self
    }
}

/// Returns a row of commands that have this effect and no operands; `with_operands` permits operands.
const fn row(effect: Effect, words: &'static str, options: &'static str) -> Harmless {
    let (operands, walks) = (NONE, ("", 0));
    Harmless { words, effect, options, operands, behind: None, whole: false, is_named: false, walks }
}

const fn says(words: &'static str, options: &'static str) -> Harmless {
    row(Effect::Says, words, options)
}

const fn reads(words: &'static str, options: &'static str) -> Harmless {
    row(Effect::Reads, words, options)
}

const fn reads_project(words: &'static str, options: &'static str) -> Harmless {
    row(Effect::ReadsProject, words, options)
}

const fn writes(words: &'static str, options: &'static str) -> Harmless {
    row(Effect::Writes, words, options)
}

const fn runs_project(words: &'static str, options: &'static str) -> Harmless {
    row(Effect::RunsProject, words, options)
}

use Operands::{Any, Chosen, Columns, Format, Inside, Most, Printing, TimeFormat};

const NONE: Operands = Most(0);

const GIT_LOG: &str = "-pwbizEFgs0123456789 -n= -S= -G= -L= -U= -M[=] -C[=] --oneline --stat[=] \
    --graph --all --decorate[=] --no-decorate --since= --until= --after= --before= --author= \
    --committer= --grep= --follow --name-only --name-status --pretty[=] --format= --reverse \
    --no-merges --merges --first-parent --abbrev-commit --abbrev= --date= --patch --no-patch \
    --max-count= --skip= --numstat --shortstat --left-right --cherry-pick --no-color --color[=] \
    --diff-filter= --word-diff[=] --color-words[=] --unified= --topo-order --date-order --raw \
    --summary --simplify-by-decoration --tags[=] --branches[=] --remotes[=] --cached --staged --check \
    --exit-code --quiet --merge-base --ignore-all-space --ignore-space-change --ignore-blank-lines \
    --minimal --patience --histogram --dirstat[=] --no-ext-diff --no-textconv --no-renames \
    --find-renames[=] --compact-summary --full-history --relative-date --count --not \
    --function-context --no-prefix";

const CARGO: &str = "-vqr -p= -j= -F= --release --package= --workspace --all --all-targets \
    --all-features --no-default-features --features= --lib --bins --bin= --tests --test= --examples \
    --example= --benches --bench= --doc --no-run --locked --offline --frozen --verbose --quiet --jobs= \
    --keep-going --no-fail-fast --message-format= --color= --exclude= --profile= --no-deps \
    --document-private-items";

const LIBTEST: &str = "-q --nocapture --no-capture --test-threads= --ignored --include-ignored --exact \
    --list --skip= --show-output --quiet --color= --report-time";

const PYTEST: &str = "-vqxsl -k= -m= -r= -n= --verbose --quiet --exitfirst --maxfail= --tb= --lf \
    --last-failed --ff --failed-first --nf --sw --stepwise --collect-only --co --durations= --color= \
    --no-header --no-summary --showlocals --markers --fixtures --version --strict-markers \
    --disable-warnings";

const NPM: &str = "-s -w= --silent --if-present --workspaces --workspace= --no-audit --no-fund \
    --ignore-scripts --prefer-offline --offline --legacy-peer-deps --frozen-lockfile --immutable";

const JEST: &str = "-i -t= --ci --runInBand --silent --verbose --passWithNoTests --testNamePattern= \
    --bail[=] --coverage --no-coverage --no-cache --onlyChanged --listTests --run --watch=false \
    --watchAll=false";

const RIPGREP: &str = "-ilLcwvFPosSuUpaqxhHnNIb0. -A= -B= -C= -e= -f= -g= -t= -T= -m= -r= -M= -d= -j= \
    -E= --files --type= --type-not= --glob= --iglob= --hidden --no-ignore --no-ignore-vcs --no-heading \
    --heading --line-number --no-line-number --files-with-matches --files-without-match --count \
    --count-matches --ignore-case --smart-case --case-sensitive --word-regexp --fixed-strings \
    --only-matching --multiline --multiline-dotall --json --stats --color= --context= --after-context= \
    --before-context= --max-count= --max-depth= --max-columns= --sort= --sortr= --replace= --regexp= \
    --follow --type-list --vimgrep --trim --pcre2 --invert-match --quiet --null --passthru \
    --with-filename --no-filename --column --no-messages --version";

/// All rows of the table. If a command begins with the words of several rows, the row with the most words
/// applies.
pub(super) const TABLE: &[Harmless] = &[
    // Words and numbers.
    says("echo, true, false, :, sleep, seq, exit, break, continue", "*").with_operands(Any),
    says("basename, dirname, which, type, whoami, id, nproc, uname, uptime", "*").with_operands(Any),
    says("command -v, command -V", "").with_operands(Any),
    says("printenv, free, df, ps, pgrep", "*").with_operands(Any),
    says("printf", "").with_operands(Format),
    says("pwd", "-LP"),
    says("cd", "-LP").with_operands(Most(1)),
    says(
        "date",
        "-u -I[=] -R -d= -r= --utc --universal --iso-8601[=] --rfc-3339= --rfc-email --date= --reference=",
    )
    .with_operands(TimeFormat),
    says(
        "test, [",
        "-e -f -d -r -w -x -s -L -h -z -n -p -S -O -G -N -t -a -o -eq -ne -lt -le -gt -ge -nt -ot -ef",
    )
    .with_operands(Any)
    .whole_words(),
    // Readers of files.
    reads("ls, cat, head, tail, wc, cut, tr, nl, tac, rev, fold, expand", "*").with_operands(Any),
    reads("paste, comm, join, cmp, od, column, realpath, readlink, stat", "*").with_operands(Any),
    reads("md5sum, sha1sum, sha256sum, sha512sum, cksum, jq", "*").with_operands(Any),
    reads("grep, egrep, fgrep", "*").with_operands(Any).walks("rRd", 1),
    reads("du", "*").with_operands(Any),
    reads(
        "sort",
        "-bcCdfghiMmnRrsuVz -k= -t= -S= --key= --field-separator= --reverse --numeric-sort --unique \
         --human-numeric-sort --version-sort --stable --ignore-case --general-numeric-sort \
         --month-sort --dictionary-order --check[=] --parallel= --zero-terminated \
         --ignore-leading-blanks --sort=",
    )
    .with_operands(Any),
    reads(
        "uniq",
        "-cdDuiz -f= -s= -w= --count --repeated --unique --ignore-case --skip-fields= --skip-chars=",
    )
    .with_operands(Most(1)),
    reads(
        "diff",
        "-rqsiwbBNyaednptTZE0123456789 -u[=] -U= -c[=] -C= -x= -W= -L= -I= --brief --unified[=] \
         --context[=] --recursive --color[=] --side-by-side --suppress-common-lines --width= --label= \
         --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --exclude= \
         --strip-trailing-cr --new-file --report-identical-files --text --minimal --show-c-function",
    )
    .with_operands(Any)
    .walks("*", 0),
    reads("file", "-biLhk --brief --mime --mime-type --mime-encoding --dereference").with_operands(Any),
    reads("xxd", "-piuEe -b -c= -g= -l= -s=").with_operands(Most(1)),
    reads("hexdump", "-Cbcdovx -n= -s= --canonical --length= --skip=").with_operands(Any),
    reads("base64", "-di -w= --decode --wrap= --ignore-garbage").with_operands(Most(1)),
    reads(
        "tree",
        "-adfisphDCnugtrJXFQlxcUvN -L= -P= -I= --dirsfirst --noreport --gitignore --filelimit= --du \
         --prune --sort= --charset=",
    )
    .with_operands(Any),
    reads(
        "find",
        "-name= -iname= -path= -ipath= -wholename= -iwholename= -lname= -type= -xtype= -maxdepth= \
         -mindepth= -size= -mtime= -mmin= -newer= -atime= -amin= -ctime= -cmin= -perm= -user= -group= \
         -links= -inum= -regex= -iregex= -regextype= -newermt= -printf= -print -print0 -ls -empty -not \
         -a -o -and -or -prune -executable -readable -writable -L -H -P -follow -xdev -mount -depth \
         -quit -true -false -daystart -nouser -nogroup -noleaf",
    )
    .with_operands(Any)
    .whole_words(),
    reads("rg", RIPGREP).with_operands(Any).walks("*", 1),
    reads(
        "fd, fdfind",
        "-HIgisaFpL0u -e= -t= -d= -E= --extension= --type= --max-depth= --min-depth= --hidden \
         --no-ignore --glob --exclude= --absolute-path --full-path --follow --changed-within= --size= \
         --case-sensitive --fixed-strings",
    )
    .with_operands(Any),
    reads("sed", "-nEr --quiet --silent").with_operands(Printing),
    reads("awk, gawk, mawk", "-F= -v=").with_operands(Columns),
    // Programs that create, move and delete files, for people who wrote a rule for them.
    writes("mkdir", "-pv -m= --parents --verbose --mode=").with_operands(Any),
    writes("rmdir", "-pv --parents --verbose").with_operands(Any),
    writes("touch", "-acmh -r= -d= -t= --no-create --date= --reference= --no-dereference").with_operands(Any),
    writes(
        "rm",
        "-rRfvidI --recursive --force --verbose --dir --interactive[=] --one-file-system --preserve-root[=]",
    )
    .with_operands(Any)
    .walks("rR", 0),
    writes(
        "cp",
        "-rRapfvnuidLPHTlsx -t= --archive --recursive --force --verbose --no-clobber --update[=] \
         --preserve[=] --parents --target-directory= --no-target-directory --dereference \
         --no-dereference --link --symbolic-link",
    )
    .with_operands(Any)
    .walks("rRa", 0),
    writes(
        "mv",
        "-fvniuT -t= --force --verbose --no-clobber --update[=] --target-directory= --no-target-directory",
    )
    .with_operands(Any)
    .walks("*", 0),
    writes("ln", "-sfnrvTLP -t= --symbolic --force --no-dereference --relative --verbose").with_operands(Any),
    writes("tee", "-ai --append --ignore-interrupts").with_operands(Any),
    writes("chmod", "-Rvcf --recursive --verbose --changes --silent --quiet")
        .with_operands(Any)
        .walks("R", 0),
    // git: no option before the subcommand, because these select the repository and settings.
    reads_project(
        "git status",
        "-sbvz -u[=] --short --branch --porcelain[=] --untracked-files[=] --ignored[=] --long \
         --verbose --show-stash --ahead-behind --no-ahead-behind --no-renames",
    )
    .with_operands(Any),
    reads_project(
        "git log, git diff, git show, git rev-list, git whatchanged, git --no-pager log, \
         git --no-pager diff, git --no-pager show",
        GIT_LOG,
    )
    .with_operands(Any),
    reads_project("git reflog", GIT_LOG),
    reads_project("git stash list, git stash show, git reflog show", GIT_LOG).with_operands(Any),
    reads_project(
        "git shortlog",
        "-sne --numbered --summary --email --no-merges --all --since= --until= --group=",
    )
    .with_operands(Any),
    reads_project(
        "git blame, git annotate",
        "-welstfn -L= -C[=] -M[=] --line-porcelain --porcelain --date= --show-email --show-name \
         --show-number --root",
    )
    .with_operands(Any),
    reads_project(
        "git rev-parse",
        "-q --quiet --show-toplevel --abbrev-ref[=] --short[=] --verify --is-inside-work-tree \
         --is-bare-repository --git-dir --absolute-git-dir --show-prefix --symbolic-full-name \
         --git-common-dir --all",
    )
    .with_operands(Any),
    reads_project(
        "git ls-files",
        "-modcstzuikv --others --modified --deleted --cached --exclude-standard --stage --full-name \
         --exclude= --error-unmatch --unmerged --killed --directory",
    )
    .with_operands(Any),
    reads_project(
        "git ls-tree",
        "-rtdlz --name-only --name-status --full-tree --full-name --long --abbrev[=]",
    )
    .with_operands(Any),
    reads_project(
        "git grep",
        "-niIlLwcvhHEFPoqpW -e= -A= -B= -C= --name-only --untracked --cached --and --or --not \
         --heading --break --count --line-number --ignore-case --word-regexp --files-with-matches \
         --fixed-strings --extended-regexp --perl-regexp --show-function --max-depth= --only-matching \
         --column --color[=] --no-color --all-match",
    )
    .with_operands(Any),
    reads_project(
        "git describe",
        "--tags --always --long --abbrev= --dirty[=] --all --match= --exact-match --contains --first-parent",
    )
    .with_operands(Any),
    reads_project("git cat-file", "-ptse").with_operands(Any),
    reads_project("git merge-base", "-a --all --is-ancestor --fork-point --octopus").with_operands(Any),
    reads_project("git name-rev", "--tags --name-only --all --always").with_operands(Any),
    reads_project("git check-ignore", "-vnq --verbose --non-matching --quiet --no-index").with_operands(Any),
    reads_project("git count-objects", "-vH --verbose --human-readable"),
    reads_project("git remote", "-v --verbose"),
    reads_project("git remote get-url", "--all --push").with_operands(Any),
    reads_project("git worktree list", "-vz --porcelain --verbose"),
    reads_project(
        "git config --get, git config --get-all, git config --list, git config -l, git config get",
        "--local --global --show-origin --name-only",
    )
    .with_operands(Most(1)),
    says("git --version, git version", ""),
    runs_project(
        "git add",
        "-AunvfN --all --update --dry-run --verbose --force --intent-to-add --no-all --refresh --chmod=",
    )
    .with_operands(Any),
    runs_project(
        "git commit",
        "-aqvs -m= -F= -C= --all --amend --no-edit --allow-empty --message= --quiet --verbose \
         --signoff --dry-run --author= --date= --fixup= --squash= --file= --reuse-message= --only \
         --no-status --reset-author",
    )
    .with_operands(Any),
    runs_project(
        "git branch",
        "-arvlqdDmMcf -u= --list --show-current --contains[=] --no-contains[=] --merged[=] \
         --no-merged[=] --sort= --format= --all --remotes --delete --move --copy --verbose --quiet \
         --set-upstream-to= --unset-upstream --points-at= --column[=] --no-column --no-color \
         --color[=] --ignore-case --track[=] --no-track --force",
    )
    .with_operands(Any),
    runs_project(
        "git switch",
        "-dqt -c= -C= --create= --detach --quiet --track[=] --no-track --guess --no-guess",
    )
    .with_operands(Any),
    runs_project("git checkout", "-qdt -b= -B= --quiet --detach --track[=] --no-track --ours --theirs")
        .with_operands(Any),
    runs_project("git restore", "-SWq -s= --staged --worktree --source= --quiet --ours --theirs")
        .with_operands(Any),
    runs_project(
        "git stash, git stash pop, git stash apply, git stash drop",
        "-ukq --include-untracked --keep-index --quiet --index --staged --all",
    ),
    runs_project(
        "git stash push",
        "-ukq -m= --include-untracked --message= --keep-index --quiet --staged --all",
    )
    .with_operands(Any),
    runs_project(
        "git tag",
        "-lad -n[=] -m= --list --sort= --contains[=] --merged[=] --points-at= --annotate --message= \
         --delete --format= --column[=]",
    )
    .with_operands(Any),
    runs_project(
        "git merge",
        "-qn -m= --no-ff --ff-only --ff --no-edit --abort --squash --no-commit --quiet --stat --no-stat",
    )
    .with_operands(Any),
    runs_project("git rebase", "-q --abort --quit --onto= --autostash --no-autostash --quiet --keep-base")
        .with_operands(Any),
    runs_project("git cherry-pick", "-nx -m= --no-commit --abort --quit --skip --mainline=")
        .with_operands(Any),
    runs_project("git revert", "-n -m= --no-edit --no-commit --abort --quit --skip --mainline=")
        .with_operands(Any),
    runs_project("git reset", "-qN --soft --mixed --quiet --no-refresh").with_operands(Any),
    runs_project("git rm", "-rfnq --cached --force --dry-run --quiet --ignore-unmatch").with_operands(Any),
    runs_project("git mv", "-fnvk --force --dry-run --verbose").with_operands(Any),
    runs_project("git init", "-q -b= --quiet --initial-branch="),
    // An unknown remote may be a folder, whose hooks run. A push sends data out.
    runs_project(
        "git fetch, git pull",
        "-apqtv --all --prune --tags --no-tags --quiet --verbose --dry-run --depth= --rebase \
         --no-rebase --ff-only --no-edit --autostash --unshallow",
    )
    .with_operands(Chosen(0)),
    runs_project(
        "git push",
        "-unqv --set-upstream --tags --follow-tags --dry-run --quiet --verbose --porcelain",
    )
    .with_operands(Chosen(0))
    .named(),
    // Rust.
    runs_project("cargo check, cargo c, cargo build, cargo b, cargo doc", CARGO),
    runs_project("cargo test, cargo t, cargo bench", CARGO).with_operands(Any).behind(LIBTEST),
    runs_project(
        "cargo nextest run, cargo nextest list",
        "-vqr -p= -j= -F= -E= --release --package= --workspace --all-targets --all-features \
         --no-default-features --features= --lib --bins --bin= --tests --test= --locked --offline \
         --no-fail-fast --no-capture --nocapture --retries= --profile= --run-ignored= --exclude= \
         --filterset= --fail-fast --hide-progress-bar --status-level=",
    )
    .with_operands(Any),
    runs_project("cargo clippy", CARGO).behind("-D= -W= -A= -F= --deny= --warn= --allow="),
    runs_project("cargo fmt", "-vq -p= --all --check --package= --verbose --quiet").behind("-l --check"),
    runs_project("cargo run, cargo r", CARGO).with_operands(Chosen(0)),
    runs_project(
        "cargo tree",
        "-dv -p= -i= -e= -f= -F= --depth= --duplicates --invert[=] --edges= --format= --workspace \
         --package= --prefix= --no-dedupe --all-features --no-default-features --features= --locked \
         --offline --frozen --charset=",
    ),
    runs_project(
        "cargo metadata, cargo pkgid, cargo locate-project",
        "--format-version= --no-deps --offline --locked --frozen --all-features --workspace \
         --message-format=",
    ),
    runs_project("cargo clean", "-nvq -p= --release --doc --dry-run --package="),
    runs_project("cargo fetch, cargo generate-lockfile", "-vq --locked --offline --frozen"),
    runs_project("cargo --version, cargo -V, cargo --list, cargo version", "-v"),
    runs_project("rustc --version, rustc -V, rustc -vV, rustc --print", "-v --verbose")
        .with_operands(Most(1)),
    runs_project("rustup show, rustup toolchain list, rustup target list", "-v --installed"),
    writes("rustfmt", "-lqv --check --edition= --quiet --verbose").with_operands(Inside),
    // JavaScript. Arguments after a script's name go to the script.
    runs_project(
        "npm test, npm t, npm start, npm ci, npm install, npm i, pnpm test, pnpm start, pnpm install, \
         pnpm i, pnpm build, pnpm lint, pnpm typecheck, pnpm format, pnpm check, pnpm dev, yarn test, \
         yarn start, yarn install, yarn build, yarn lint, yarn typecheck, yarn format, yarn check, yarn dev",
        NPM,
    )
    .with_operands(Chosen(0)),
    runs_project("yarn", NPM),
    runs_project("npm run, npm run-script, pnpm run, yarn run", NPM).with_operands(Chosen(1)),
    runs_project(
        "npm ls, npm list, pnpm ls, pnpm list, yarn list, npm outdated, pnpm outdated",
        "-al -w= --depth= --all --json --long --workspace= --workspaces --omit= --parseable \
         --production --prod",
    )
    .with_operands(Any),
    runs_project("npm audit", "--json --omit= --production"),
    runs_project("npm why, npm explain, pnpm why, yarn why, npm root, npm bin", "--json").with_operands(Any),
    runs_project("npm --version, npm -v, pnpm --version, pnpm -v, yarn --version, yarn -v", ""),
    says("node --version, node -v", ""),
    reads("node --check, node -c", "").with_operands(Most(1)),
    runs_project("node --test, node", "").with_operands(Chosen(0)),
    runs_project(
        "npx tsc, tsc, pnpm tsc, yarn tsc",
        "-bv --noEmit --build --pretty --listFiles --version --skipLibCheck --strict --showConfig \
         --extendedDiagnostics",
    ),
    runs_project(
        "npx eslint, eslint, pnpm eslint, yarn eslint",
        "--ext= --quiet --max-warnings= --cache --no-cache --no-fix --no-color --version \
         --report-unused-disable-directives",
    )
    .with_operands(Inside),
    runs_project(
        "npx prettier, prettier, pnpm prettier, yarn prettier",
        "-cl --check --list-different --log-level= --loglevel= --version --no-color",
    )
    .with_operands(Inside),
    runs_project(
        "npx jest, jest, npx vitest run, npx vitest, vitest run, pnpm vitest run, pnpm jest, yarn jest",
        JEST,
    )
    .with_operands(Inside),
    // Python.
    runs_project("pytest, python -m pytest, python3 -m pytest, uv run pytest, poetry run pytest", PYTEST)
        .with_operands(Inside),
    runs_project("python -m unittest, python3 -m unittest", "-vqfbc -k= --verbose --quiet")
        .with_operands(Inside),
    says("python --version, python -V, python3 --version, python3 -V, pip --version, pip3 --version", ""),
    runs_project("python, python3", "").with_operands(Chosen(0)),
    runs_project("mypy, python -m mypy, python3 -m mypy", "--strict --ignore-missing-imports")
        .with_operands(Inside),
    runs_project("ruff check, ruff format --check", "-qv --quiet --statistics --diff --no-fix")
        .with_operands(Inside),
    runs_project("black --check, black --diff", "-qv --check --diff --quiet --color").with_operands(Inside),
    runs_project(
        "pip list, pip show, pip freeze, pip check, pip3 list, pip3 show, pip3 freeze",
        "-lv --local --verbose --format=",
    )
    .with_operands(Any),
    // Others.
    runs_project(
        "make",
        "-ksnBqi -j[=] --silent --quiet --dry-run --just-print --keep-going --always-make \
         --no-print-directory --jobs[=]",
    )
    .with_operands(Chosen(usize::MAX)),
    runs_project("just", "-ln --list --dry-run --summary --evaluate").with_operands(Chosen(1)),
    runs_project(
        "go build, go vet, go list, go test",
        "-v -race -short -cover -failfast -json -benchmem -m -deps -run= -count= -timeout= -bench= \
         -tags= -parallel= -list= -cpu= -f= -p=",
    )
    .with_operands(Inside)
    .whole_words(),
    runs_project("go fmt", "-n -x").with_operands(Inside).whole_words(),
    says("go version", ""),
    runs_project("go run", "-race").with_operands(Chosen(0)).whole_words(),
];
