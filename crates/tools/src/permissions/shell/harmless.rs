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
    /// The command reads; the current folder determines the programs that it runs and the files that it
    /// shows.
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
    /// Names of targets or scripts to run: the rule contains all of them, or contains none and there are at
    /// most this many.
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

/// One row of the table.
pub(crate) struct Harmless {
    /// The programs, each with its subcommand if it has one, separated by `, `.
    pub(super) words: &'static str,
    pub(crate) effect: Effect,
    pub(super) options: &'static str,
    pub(super) operands: Operands,
    /// Options allowed after `--`, if they are for another program.
    pub(super) behind: Option<&'static str>,
    /// True if options are whole words with one hyphen: `-name`.
    pub(super) whole: bool,
    /// True if a rule must have all of the words.
    pub(super) is_named: bool,
    /// The options with which the program opens files within folders (`*`: it always does), and the number
    /// of its operands that are not paths.
    pub(super) walks: (&'static str, usize),
}

impl Harmless {
    const fn taking(mut self, operands: Operands) -> Self {
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

/// Returns the row of commands with this effect and any operands.
const fn row(effect: Effect, words: &'static str, options: &'static str) -> Harmless {
    let (operands, walks) = (Operands::Any, ("", 0));
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

use Operands::{Chosen, Columns, Format, Inside, Most, Printing, TimeFormat};

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

/// All rows. If a command begins with the words of several rows, the row with the most words applies.
pub(super) const TABLE: &[Harmless] = &[
    // Words and numbers.
    says("echo, true, false, :, sleep, seq, exit, break, continue", "*"),
    says("basename, dirname, which, type, whoami, id, nproc, uname, uptime", "*"),
    says("command -v, command -V", ""),
    says("printenv, free, df, ps, pgrep", "*"),
    says("printf", "").taking(Format),
    says("pwd", "-LP").taking(NONE),
    says("cd", "-LP").taking(Most(1)),
    says(
        "date",
        "-u -I[=] -R -d= -r= --utc --universal --iso-8601[=] --rfc-3339= --rfc-email --date= --reference=",
    )
    .taking(TimeFormat),
    says(
        "test, [",
        "-e -f -d -r -w -x -s -L -h -z -n -p -S -O -G -N -t -a -o -eq -ne -lt -le -gt -ge -nt -ot -ef",
    )
    .whole_words(),
    // Readers of files.
    reads("ls, cat, head, tail, wc, cut, tr, nl, tac, rev, fold, expand", "*"),
    reads("paste, comm, join, cmp, od, column, realpath, readlink, stat", "*"),
    reads("md5sum, sha1sum, sha256sum, sha512sum, cksum, jq", "*"),
    reads("grep, egrep, fgrep", "*").walks("rRd", 1),
    reads("du", "*"),
    reads(
        "sort",
        "-bcCdfghiMmnRrsuVz -k= -t= -S= --key= --field-separator= --reverse --numeric-sort --unique \
         --human-numeric-sort --version-sort --stable --ignore-case --general-numeric-sort \
         --month-sort --dictionary-order --check[=] --parallel= --zero-terminated \
         --ignore-leading-blanks --sort=",
    ),
    reads(
        "uniq",
        "-cdDuiz -f= -s= -w= --count --repeated --unique --ignore-case --skip-fields= --skip-chars=",
    )
    .taking(Most(1)),
    reads(
        "diff",
        "-rqsiwbBNyaednptTZE0123456789 -u[=] -U= -c[=] -C= -x= -W= -L= -I= --brief --unified[=] \
         --context[=] --recursive --color[=] --side-by-side --suppress-common-lines --width= --label= \
         --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --exclude= \
         --strip-trailing-cr --new-file --report-identical-files --text --minimal --show-c-function",
    )
    .walks("*", 0),
    reads("file", "-biLhk --brief --mime --mime-type --mime-encoding --dereference"),
    reads("xxd", "-piuEe -b -c= -g= -l= -s=").taking(Most(1)),
    reads("hexdump", "-Cbcdovx -n= -s= --canonical --length= --skip="),
    reads("base64", "-di -w= --decode --wrap= --ignore-garbage").taking(Most(1)),
    reads(
        "tree",
        "-adfisphDCnugtrJXFQlxcUvN -L= -P= -I= --dirsfirst --noreport --gitignore --filelimit= --du \
         --prune --sort= --charset=",
    ),
    reads(
        "find",
        "-name= -iname= -path= -ipath= -wholename= -iwholename= -lname= -type= -xtype= -maxdepth= \
         -mindepth= -size= -mtime= -mmin= -newer= -atime= -amin= -ctime= -cmin= -perm= -user= -group= \
         -links= -inum= -regex= -iregex= -regextype= -newermt= -printf= -print -print0 -ls -empty -not \
         -a -o -and -or -prune -executable -readable -writable -L -H -P -follow -xdev -mount -depth \
         -quit -true -false -daystart -nouser -nogroup -noleaf",
    )
    .whole_words(),
    reads("rg", RIPGREP).walks("*", 1),
    reads(
        "fd, fdfind",
        "-HIgisaFpL0u -e= -t= -d= -E= --extension= --type= --max-depth= --min-depth= --hidden \
         --no-ignore --glob --exclude= --absolute-path --full-path --follow --changed-within= --size= \
         --case-sensitive --fixed-strings",
    ),
    reads("sed", "-nEr --quiet --silent").taking(Printing),
    reads("awk, gawk, mawk", "-F= -v=").taking(Columns),
    // Programs that create, move and delete files, for people who wrote a rule for them.
    writes("mkdir", "-pv -m= --parents --verbose --mode="),
    writes("rmdir", "-pv --parents --verbose"),
    writes("touch", "-acmh -r= -d= -t= --no-create --date= --reference= --no-dereference"),
    writes(
        "rm",
        "-rRfvidI --recursive --force --verbose --dir --interactive[=] --one-file-system --preserve-root[=]",
    )
    .walks("rR", 0),
    writes(
        "cp",
        "-rRapfvnuidLPHTlsx -t= --archive --recursive --force --verbose --no-clobber --update[=] \
         --preserve[=] --parents --target-directory= --no-target-directory --dereference \
         --no-dereference --link --symbolic-link",
    )
    .walks("rRa", 0),
    writes(
        "mv",
        "-fvniuT -t= --force --verbose --no-clobber --update[=] --target-directory= --no-target-directory",
    )
    .walks("*", 0),
    writes("ln", "-sfnrvTLP -t= --symbolic --force --no-dereference --relative --verbose"),
    writes("tee", "-ai --append --ignore-interrupts"),
    writes("chmod", "-Rvcf --recursive --verbose --changes --silent --quiet").walks("R", 0),
    // git: no option before the subcommand, because these select the repository and settings.
    reads_project(
        "git status",
        "-sbvz -u[=] --short --branch --porcelain[=] --untracked-files[=] --ignored[=] --long \
         --verbose --show-stash --ahead-behind --no-ahead-behind --no-renames",
    ),
    reads_project(
        "git log, git diff, git show, git rev-list, git whatchanged, git --no-pager log, git --no-pager diff, \
         git --no-pager show",
        GIT_LOG,
    ),
    reads_project("git reflog", GIT_LOG).taking(NONE),
    reads_project("git stash list, git stash show, git reflog show", GIT_LOG),
    reads_project(
        "git shortlog",
        "-sne --numbered --summary --email --no-merges --all --since= --until= --group=",
    ),
    reads_project(
        "git blame, git annotate",
        "-welstfn -L= -C[=] -M[=] --line-porcelain --porcelain --date= --show-email --show-name \
         --show-number --root",
    ),
    reads_project(
        "git rev-parse",
        "-q --quiet --show-toplevel --abbrev-ref[=] --short[=] --verify --is-inside-work-tree \
         --is-bare-repository --git-dir --absolute-git-dir --show-prefix --symbolic-full-name \
         --git-common-dir --all",
    ),
    reads_project(
        "git ls-files",
        "-modcstzuikv --others --modified --deleted --cached --exclude-standard --stage --full-name \
         --exclude= --error-unmatch --unmerged --killed --directory",
    ),
    reads_project(
        "git ls-tree",
        "-rtdlz --name-only --name-status --full-tree --full-name --long --abbrev[=]",
    ),
    reads_project(
        "git grep",
        "-niIlLwcvhHEFPoqpW -e= -A= -B= -C= --name-only --untracked --cached --and --or --not \
         --heading --break --count --line-number --ignore-case --word-regexp --files-with-matches \
         --fixed-strings --extended-regexp --perl-regexp --show-function --max-depth= --only-matching \
         --column --color[=] --no-color --all-match",
    ),
    reads_project(
        "git describe",
        "--tags --always --long --abbrev= --dirty[=] --all --match= --exact-match --contains --first-parent",
    ),
    reads_project("git cat-file", "-ptse"),
    reads_project("git merge-base", "-a --all --is-ancestor --fork-point --octopus"),
    reads_project("git name-rev", "--tags --name-only --all --always"),
    reads_project("git check-ignore", "-vnq --verbose --non-matching --quiet --no-index"),
    reads_project("git count-objects", "-vH --verbose --human-readable").taking(NONE),
    reads_project("git remote", "-v --verbose").taking(NONE),
    reads_project("git remote get-url", "--all --push"),
    reads_project("git worktree list", "-vz --porcelain --verbose").taking(NONE),
    reads_project(
        "git config --get, git config --get-all, git config --list, git config -l, git config get",
        "--local --global --show-origin --name-only",
    )
    .taking(Most(1)),
    says("git --version, git version", "").taking(NONE),
    runs_project(
        "git add",
        "-AunvfN --all --update --dry-run --verbose --force --intent-to-add --no-all --refresh --chmod=",
    ),
    runs_project(
        "git commit",
        "-aqvs -m= -F= -C= --all --amend --no-edit --allow-empty --message= --quiet --verbose \
         --signoff --dry-run --author= --date= --fixup= --squash= --file= --reuse-message= --only \
         --no-status --reset-author",
    ),
    runs_project(
        "git branch",
        "-arvlqdDmMcf -u= --list --show-current --contains[=] --no-contains[=] --merged[=] \
         --no-merged[=] --sort= --format= --all --remotes --delete --move --copy --verbose --quiet \
         --set-upstream-to= --unset-upstream --points-at= --column[=] --no-column --no-color \
         --color[=] --ignore-case --track[=] --no-track --force",
    ),
    runs_project(
        "git switch",
        "-dqt -c= -C= --create= --detach --quiet --track[=] --no-track --guess --no-guess",
    ),
    runs_project("git checkout", "-qdt -b= -B= --quiet --detach --track[=] --no-track --ours --theirs"),
    runs_project("git restore", "-SWq -s= --staged --worktree --source= --quiet --ours --theirs"),
    runs_project(
        "git stash, git stash pop, git stash apply, git stash drop",
        "-ukq --include-untracked --keep-index --quiet --index --staged --all",
    )
    .taking(NONE),
    runs_project(
        "git stash push",
        "-ukq -m= --include-untracked --message= --keep-index --quiet --staged --all",
    ),
    runs_project(
        "git tag",
        "-lad -n[=] -m= --list --sort= --contains[=] --merged[=] --points-at= --annotate --message= \
         --delete --format= --column[=]",
    ),
    runs_project(
        "git merge",
        "-qn -m= --no-ff --ff-only --ff --no-edit --abort --squash --no-commit --quiet --stat --no-stat",
    ),
    runs_project("git rebase", "-q --abort --quit --onto= --autostash --no-autostash --quiet --keep-base"),
    runs_project("git cherry-pick", "-nx -m= --no-commit --abort --quit --skip --mainline="),
    runs_project("git revert", "-n -m= --no-edit --no-commit --abort --quit --skip --mainline="),
    runs_project("git reset", "-qN --soft --mixed --quiet --no-refresh"),
    runs_project("git rm", "-rfnq --cached --force --dry-run --quiet --ignore-unmatch"),
    runs_project("git mv", "-fnvk --force --dry-run --verbose"),
    runs_project("git init", "-q -b= --quiet --initial-branch=").taking(NONE),
    // An unknown remote may be a folder, whose hooks run. A push sends data out.
    runs_project(
        "git fetch, git pull",
        "-apqtv --all --prune --tags --no-tags --quiet --verbose --dry-run --depth= --rebase \
         --no-rebase --ff-only --no-edit --autostash --unshallow",
    )
    .taking(Chosen(0)),
    runs_project(
        "git push",
        "-unqv --set-upstream --tags --follow-tags --dry-run --quiet --verbose --porcelain",
    )
    .taking(Chosen(0))
    .named(),
    // Rust.
    runs_project("cargo check, cargo c, cargo build, cargo b, cargo doc", CARGO).taking(NONE),
    runs_project("cargo test, cargo t, cargo bench", CARGO).behind(LIBTEST),
    runs_project(
        "cargo nextest run, cargo nextest list",
        "-vqr -p= -j= -F= -E= --release --package= --workspace --all-targets --all-features \
         --no-default-features --features= --lib --bins --bin= --tests --test= --locked --offline \
         --no-fail-fast --no-capture --nocapture --retries= --profile= --run-ignored= --exclude= \
         --filterset= --fail-fast --hide-progress-bar --status-level=",
    ),
    runs_project("cargo clippy", CARGO).taking(NONE).behind("-D= -W= -A= -F= --deny= --warn= --allow="),
    runs_project("cargo fmt", "-vq -p= --all --check --package= --verbose --quiet")
        .taking(NONE)
        .behind("-l --check"),
    runs_project("cargo run, cargo r", CARGO).taking(Chosen(0)),
    runs_project(
        "cargo tree",
        "-dv -p= -i= -e= -f= -F= --depth= --duplicates --invert[=] --edges= --format= --workspace \
         --package= --prefix= --no-dedupe --all-features --no-default-features --features= --locked \
         --offline --frozen --charset=",
    )
    .taking(NONE),
    runs_project(
        "cargo metadata, cargo pkgid, cargo locate-project",
        "--format-version= --no-deps --offline --locked --frozen --all-features --workspace \
         --message-format=",
    )
    .taking(NONE),
    runs_project("cargo clean", "-nvq -p= --release --doc --dry-run --package=").taking(NONE),
    runs_project("cargo fetch, cargo generate-lockfile", "-vq --locked --offline --frozen").taking(NONE),
    runs_project("cargo --version, cargo -V, cargo --list, cargo version", "-v").taking(NONE),
    runs_project("rustc --version, rustc -V, rustc -vV, rustc --print", "-v --verbose").taking(Most(1)),
    runs_project("rustup show, rustup toolchain list, rustup target list", "-v --installed").taking(NONE),
    writes("rustfmt", "-lqv --check --edition= --quiet --verbose").taking(Inside),
    // JavaScript. Arguments after a script's name go to the script.
    runs_project(
        "npm test, npm t, npm start, npm ci, npm install, npm i, pnpm test, pnpm start, pnpm install, \
         pnpm i, pnpm build, pnpm lint, pnpm typecheck, pnpm format, pnpm check, pnpm dev, yarn test, \
         yarn start, yarn install, yarn build, yarn lint, yarn typecheck, yarn format, yarn check, yarn dev",
        NPM,
    )
    .taking(Chosen(0)),
    runs_project("yarn", NPM).taking(NONE),
    runs_project("npm run, npm run-script, pnpm run, yarn run", NPM).taking(Chosen(1)),
    runs_project(
        "npm ls, npm list, pnpm ls, pnpm list, yarn list, npm outdated, pnpm outdated",
        "-al -w= --depth= --all --json --long --workspace= --workspaces --omit= --parseable \
         --production --prod",
    ),
    runs_project("npm audit", "--json --omit= --production").taking(NONE),
    runs_project("npm why, npm explain, pnpm why, yarn why, npm root, npm bin", "--json"),
    runs_project("npm --version, npm -v, pnpm --version, pnpm -v, yarn --version, yarn -v", "").taking(NONE),
    says("node --version, node -v", "").taking(NONE),
    reads("node --check, node -c", "").taking(Most(1)),
    runs_project("node --test, node", "").taking(Chosen(0)),
    runs_project(
        "npx tsc, tsc, pnpm tsc, yarn tsc",
        "-bv --noEmit --build --pretty --listFiles --version --skipLibCheck --strict --showConfig \
         --extendedDiagnostics",
    )
    .taking(NONE),
    runs_project(
        "npx eslint, eslint, pnpm eslint, yarn eslint",
        "--ext= --quiet --max-warnings= --cache --no-cache --no-fix --no-color --version \
         --report-unused-disable-directives",
    )
    .taking(Inside),
    runs_project(
        "npx prettier, prettier, pnpm prettier, yarn prettier",
        "-cl --check --list-different --log-level= --loglevel= --version --no-color",
    )
    .taking(Inside),
    runs_project(
        "npx jest, jest, npx vitest run, npx vitest, vitest run, pnpm vitest run, pnpm jest, yarn jest",
        JEST,
    )
    .taking(Inside),
    // Python.
    runs_project("pytest, python -m pytest, python3 -m pytest, uv run pytest, poetry run pytest", PYTEST)
        .taking(Inside),
    runs_project("python -m unittest, python3 -m unittest", "-vqfbc -k= --verbose --quiet").taking(Inside),
    says("python --version, python -V, python3 --version, python3 -V, pip --version, pip3 --version", "")
        .taking(NONE),
    runs_project("python, python3", "").taking(Chosen(0)),
    runs_project("mypy, python -m mypy, python3 -m mypy", "--strict --ignore-missing-imports").taking(Inside),
    runs_project("ruff check, ruff format --check", "-qv --quiet --statistics --diff --no-fix")
        .taking(Inside),
    runs_project("black --check, black --diff", "-qv --check --diff --quiet --color").taking(Inside),
    runs_project(
        "pip list, pip show, pip freeze, pip check, pip3 list, pip3 show, pip3 freeze",
        "-lv --local --verbose --format=",
    ),
    // Others.
    runs_project(
        "make",
        "-ksnBqi -j[=] --silent --quiet --dry-run --just-print --keep-going --always-make \
         --no-print-directory --jobs[=]",
    )
    .taking(Chosen(usize::MAX)),
    runs_project("just", "-ln --list --dry-run --summary --evaluate").taking(Chosen(1)),
    runs_project(
        "go build, go vet, go list, go test",
        "-v -race -short -cover -failfast -json -benchmem -m -deps -run= -count= -timeout= -bench= \
         -tags= -parallel= -list= -cpu= -f= -p=",
    )
    .taking(Inside)
    .whole_words(),
    runs_project("go fmt", "-n -x").taking(Inside).whole_words(),
    says("go version", "").taking(NONE),
    runs_project("go run", "-race").taking(Chosen(0)).whole_words(),
];
