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
    /// The program with its subcommand, if it has any.
    pub(super) words: &'static [&'static str],
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

const fn row(
    words: &'static [&'static str],
    effect: Effect,
    options: &'static str,
    operands: Operands,
) -> Harmless {
    Harmless { words, effect, options, operands, behind: None, whole: false, is_named: false, walks: ("", 0) }
}

use Effect::{Reads, ReadsProject, RunsProject, Says, Writes};
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

/// All rows. If a command begins with the words of several rows, the row with the most words applies.
pub(super) const TABLE: &[Harmless] = &[
    // Words and numbers.
    row(&["echo", "true", "false", ":", "sleep", "seq", "exit", "break", "continue"], Says, "*", Any),
    row(
        &["basename", "dirname", "which", "type", "whoami", "id", "nproc", "uname", "uptime"],
        Says,
        "*",
        Any,
    ),
    row(&["command -v", "command -V"], Says, "", Any),
    row(&["printenv", "free", "df", "ps", "pgrep"], Says, "*", Any),
    row(&["printf"], Says, "", Format),
    row(&["pwd"], Says, "-LP", NONE),
    row(&["cd"], Says, "-LP", Most(1)),
    row(
        &["date"],
        Says,
        "-u -I[=] -R -d= -r= --utc --universal --iso-8601[=] --rfc-3339= --rfc-email --date= --reference=",
        TimeFormat,
    ),
    row(
        &["test", "["],
        Says,
        "-e -f -d -r -w -x -s -L -h -z -n -p -S -O -G -N -t -a -o -eq -ne -lt -le -gt -ge -nt -ot -ef",
        Any,
    )
    .whole_words(),
    // Readers of files.
    row(
        &["ls", "cat", "head", "tail", "wc", "cut", "tr", "nl", "tac", "rev", "fold", "expand"],
        Reads,
        "*",
        Any,
    ),
    row(&["paste", "comm", "join", "cmp", "od", "column", "realpath", "readlink", "stat"], Reads, "*", Any),
    row(&["md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "jq"], Reads, "*", Any),
    row(&["grep", "egrep", "fgrep"], Reads, "*", Any).walks("rRd", 1),
    row(&["du"], Reads, "*", Any),
    row(
        &["sort"],
        Reads,
        "-bcCdfghiMmnRrsuVz -k= -t= -S= --key= --field-separator= --reverse --numeric-sort --unique \
         --human-numeric-sort --version-sort --stable --ignore-case --general-numeric-sort \
         --month-sort --dictionary-order --check[=] --parallel= --zero-terminated \
         --ignore-leading-blanks --sort=",
        Any,
    ),
    row(
        &["uniq"],
        Reads,
        "-cdDuiz -f= -s= -w= --count --repeated --unique --ignore-case --skip-fields= --skip-chars=",
        Most(1),
    ),
    row(
        &["diff"],
        Reads,
        "-rqsiwbBNyaednptTZE0123456789 -u[=] -U= -c[=] -C= -x= -W= -L= -I= --brief --unified[=] \
         --context[=] --recursive --color[=] --side-by-side --suppress-common-lines --width= --label= \
         --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --exclude= \
         --strip-trailing-cr --new-file --report-identical-files --text --minimal --show-c-function",
        Any,
    )
    .walks("*", 0),
    row(&["file"], Reads, "-biLhk --brief --mime --mime-type --mime-encoding --dereference", Any),
    row(&["xxd"], Reads, "-piuEe -b -c= -g= -l= -s=", Most(1)),
    row(&["hexdump"], Reads, "-Cbcdovx -n= -s= --canonical --length= --skip=", Any),
    row(&["base64"], Reads, "-di -w= --decode --wrap= --ignore-garbage", Most(1)),
    row(
        &["tree"],
        Reads,
        "-adfisphDCnugtrJXFQlxcUvN -L= -P= -I= --dirsfirst --noreport --gitignore --filelimit= --du \
         --prune --sort= --charset=",
        Any,
    ),
    row(
        &["find"],
        Reads,
        "-name= -iname= -path= -ipath= -wholename= -iwholename= -lname= -type= -xtype= -maxdepth= \
         -mindepth= -size= -mtime= -mmin= -newer= -atime= -amin= -ctime= -cmin= -perm= -user= -group= \
         -links= -inum= -regex= -iregex= -regextype= -newermt= -printf= -print -print0 -ls -empty -not \
         -a -o -and -or -prune -executable -readable -writable -L -H -P -follow -xdev -mount -depth \
         -quit -true -false -daystart -nouser -nogroup -noleaf",
        Any,
    )
    .whole_words(),
    row(&["rg"], Reads, RIPGREP, Any).walks("*", 1),
    row(
        &["fd", "fdfind"],
        Reads,
        "-HIgisaFpL0u -e= -t= -d= -E= --extension= --type= --max-depth= --min-depth= --hidden \
         --no-ignore --glob --exclude= --absolute-path --full-path --follow --changed-within= --size= \
         --case-sensitive --fixed-strings",
        Any,
    ),
    row(&["sed"], Reads, "-nEr --quiet --silent", Printing),
    row(&["awk", "gawk", "mawk"], Reads, "-F= -v=", Columns),
    // Programs that create, move and delete files, for people who wrote a rule for them.
    row(&["mkdir"], Writes, "-pv -m= --parents --verbose --mode=", Any),
    row(&["rmdir"], Writes, "-pv --parents --verbose", Any),
    row(&["touch"], Writes, "-acmh -r= -d= -t= --no-create --date= --reference= --no-dereference", Any),
    row(
        &["rm"],
        Writes,
        "-rRfvidI --recursive --force --verbose --dir --interactive[=] --one-file-system --preserve-root[=]",
        Any,
    )
    .walks("rR", 0),
    row(
        &["cp"],
        Writes,
        "-rRapfvnuidLPHTlsx -t= --archive --recursive --force --verbose --no-clobber --update[=] \
         --preserve[=] --parents --target-directory= --no-target-directory --dereference \
         --no-dereference --link --symbolic-link",
        Any,
    )
    .walks("rRa", 0),
    row(
        &["mv"],
        Writes,
        "-fvniuT -t= --force --verbose --no-clobber --update[=] --target-directory= --no-target-directory",
        Any,
    )
    .walks("*", 0),
    row(&["ln"], Writes, "-sfnrvTLP -t= --symbolic --force --no-dereference --relative --verbose", Any),
    row(&["tee"], Writes, "-ai --append --ignore-interrupts", Any),
    row(&["chmod"], Writes, "-Rvcf --recursive --verbose --changes --silent --quiet", Any).walks("R", 0),
    // git: no option before the subcommand, because these select the repository and settings.
    row(
        &["git status"],
        ReadsProject,
        "-sbvz -u[=] --short --branch --porcelain[=] --untracked-files[=] --ignored[=] --long \
         --verbose --show-stash --ahead-behind --no-ahead-behind --no-renames",
        Any,
    ),
    row(
        &[
            "git log",
            "git diff",
            "git show",
            "git rev-list",
            "git whatchanged",
            "git --no-pager log",
            "git --no-pager diff",
            "git --no-pager show",
        ],
        ReadsProject,
        GIT_LOG,
        Any,
    ),
    row(&["git reflog"], ReadsProject, GIT_LOG, NONE),
    row(&["git stash list", "git stash show", "git reflog show"], ReadsProject, GIT_LOG, Any),
    row(
        &["git shortlog"],
        ReadsProject,
        "-sne --numbered --summary --email --no-merges --all --since= --until= --group=",
        Any,
    ),
    row(
        &["git blame", "git annotate"],
        ReadsProject,
        "-welstfn -L= -C[=] -M[=] --line-porcelain --porcelain --date= --show-email --show-name \
         --show-number --root",
        Any,
    ),
    row(
        &["git rev-parse"],
        ReadsProject,
        "-q --quiet --show-toplevel --abbrev-ref[=] --short[=] --verify --is-inside-work-tree \
         --is-bare-repository --git-dir --absolute-git-dir --show-prefix --symbolic-full-name \
         --git-common-dir --all",
        Any,
    ),
    row(
        &["git ls-files"],
        ReadsProject,
        "-modcstzuikv --others --modified --deleted --cached --exclude-standard --stage --full-name \
         --exclude= --error-unmatch --unmerged --killed --directory",
        Any,
    ),
    row(
        &["git ls-tree"],
        ReadsProject,
        "-rtdlz --name-only --name-status --full-tree --full-name --long --abbrev[=]",
        Any,
    ),
    row(
        &["git grep"],
        ReadsProject,
        "-niIlLwcvhHEFPoqpW -e= -A= -B= -C= --name-only --untracked --cached --and --or --not \
         --heading --break --count --line-number --ignore-case --word-regexp --files-with-matches \
         --fixed-strings --extended-regexp --perl-regexp --show-function --max-depth= --only-matching \
         --column --color[=] --no-color --all-match",
        Any,
    ),
    row(
        &["git describe"],
        ReadsProject,
        "--tags --always --long --abbrev= --dirty[=] --all --match= --exact-match --contains --first-parent",
        Any,
    ),
    row(&["git cat-file"], ReadsProject, "-ptse", Any),
    row(&["git merge-base"], ReadsProject, "-a --all --is-ancestor --fork-point --octopus", Any),
    row(&["git name-rev"], ReadsProject, "--tags --name-only --all --always", Any),
    row(&["git check-ignore"], ReadsProject, "-vnq --verbose --non-matching --quiet --no-index", Any),
    row(&["git count-objects"], ReadsProject, "-vH --verbose --human-readable", NONE),
    row(&["git remote"], ReadsProject, "-v --verbose", NONE),
    row(&["git remote get-url"], ReadsProject, "--all --push", Any),
    row(&["git worktree list"], ReadsProject, "-vz --porcelain --verbose", NONE),
    row(
        &["git config --get", "git config --get-all", "git config --list", "git config -l", "git config get"],
        ReadsProject,
        "--local --global --show-origin --name-only",
        Most(1),
    ),
    row(&["git --version", "git version"], Says, "", NONE),
    row(
        &["git add"],
        RunsProject,
        "-AunvfN --all --update --dry-run --verbose --force --intent-to-add --no-all --refresh --chmod=",
        Any,
    ),
    row(
        &["git commit"],
        RunsProject,
        "-aqvs -m= -F= -C= --all --amend --no-edit --allow-empty --message= --quiet --verbose \
         --signoff --dry-run --author= --date= --fixup= --squash= --file= --reuse-message= --only \
         --no-status --reset-author",
        Any,
    ),
    row(
        &["git branch"],
        RunsProject,
        "-arvlqdDmMcf -u= --list --show-current --contains[=] --no-contains[=] --merged[=] \
         --no-merged[=] --sort= --format= --all --remotes --delete --move --copy --verbose --quiet \
         --set-upstream-to= --unset-upstream --points-at= --column[=] --no-column --no-color \
         --color[=] --ignore-case --track[=] --no-track --force",
        Any,
    ),
    row(
        &["git switch"],
        RunsProject,
        "-dqt -c= -C= --create= --detach --quiet --track[=] --no-track --guess --no-guess",
        Any,
    ),
    row(
        &["git checkout"],
        RunsProject,
        "-qdt -b= -B= --quiet --detach --track[=] --no-track --ours --theirs",
        Any,
    ),
    row(&["git restore"], RunsProject, "-SWq -s= --staged --worktree --source= --quiet --ours --theirs", Any),
    row(
        &["git stash", "git stash pop", "git stash apply", "git stash drop"],
        RunsProject,
        "-ukq --include-untracked --keep-index --quiet --index --staged --all",
        NONE,
    ),
    row(
        &["git stash push"],
        RunsProject,
        "-ukq -m= --include-untracked --message= --keep-index --quiet --staged --all",
        Any,
    ),
    row(
        &["git tag"],
        RunsProject,
        "-lad -n[=] -m= --list --sort= --contains[=] --merged[=] --points-at= --annotate --message= \
         --delete --format= --column[=]",
        Any,
    ),
    row(
        &["git merge"],
        RunsProject,
        "-qn -m= --no-ff --ff-only --ff --no-edit --abort --squash --no-commit --quiet --stat --no-stat",
        Any,
    ),
    row(
        &["git rebase"],
        RunsProject,
        "-q --abort --quit --onto= --autostash --no-autostash --quiet --keep-base",
        Any,
    ),
    row(&["git cherry-pick"], RunsProject, "-nx -m= --no-commit --abort --quit --skip --mainline=", Any),
    row(&["git revert"], RunsProject, "-n -m= --no-edit --no-commit --abort --quit --skip --mainline=", Any),
    row(&["git reset"], RunsProject, "-qN --soft --mixed --quiet --no-refresh", Any),
    row(&["git rm"], RunsProject, "-rfnq --cached --force --dry-run --quiet --ignore-unmatch", Any),
    row(&["git mv"], RunsProject, "-fnvk --force --dry-run --verbose", Any),
    row(&["git init"], RunsProject, "-q -b= --quiet --initial-branch=", NONE),
    // An unknown remote may be a folder, whose hooks run. A push sends data out.
    row(
        &["git fetch", "git pull"],
        RunsProject,
        "-apqtv --all --prune --tags --no-tags --quiet --verbose --dry-run --depth= --rebase \
         --no-rebase --ff-only --no-edit --autostash --unshallow",
        Chosen(0),
    ),
    row(
        &["git push"],
        RunsProject,
        "-unqv --set-upstream --tags --follow-tags --dry-run --quiet --verbose --porcelain",
        Chosen(0),
    )
    .named(),
    // Rust.
    row(&["cargo check", "cargo c", "cargo build", "cargo b", "cargo doc"], RunsProject, CARGO, NONE),
    row(&["cargo test", "cargo t", "cargo bench"], RunsProject, CARGO, Any).behind(LIBTEST),
    row(
        &["cargo nextest run", "cargo nextest list"],
        RunsProject,
        "-vqr -p= -j= -F= -E= --release --package= --workspace --all-targets --all-features \
         --no-default-features --features= --lib --bins --bin= --tests --test= --locked --offline \
         --no-fail-fast --no-capture --nocapture --retries= --profile= --run-ignored= --exclude= \
         --filterset= --fail-fast --hide-progress-bar --status-level=",
        Any,
    ),
    row(&["cargo clippy"], RunsProject, CARGO, NONE).behind("-D= -W= -A= -F= --deny= --warn= --allow="),
    row(&["cargo fmt"], RunsProject, "-vq -p= --all --check --package= --verbose --quiet", NONE)
        .behind("-l --check"),
    row(&["cargo run", "cargo r"], RunsProject, CARGO, Chosen(0)),
    row(
        &["cargo tree"],
        RunsProject,
        "-dv -p= -i= -e= -f= -F= --depth= --duplicates --invert[=] --edges= --format= --workspace \
         --package= --prefix= --no-dedupe --all-features --no-default-features --features= --locked \
         --offline --frozen --charset=",
        NONE,
    ),
    row(
        &["cargo metadata", "cargo pkgid", "cargo locate-project"],
        RunsProject,
        "--format-version= --no-deps --offline --locked --frozen --all-features --workspace \
         --message-format=",
        NONE,
    ),
    row(&["cargo clean"], RunsProject, "-nvq -p= --release --doc --dry-run --package=", NONE),
    row(&["cargo fetch", "cargo generate-lockfile"], RunsProject, "-vq --locked --offline --frozen", NONE),
    row(&["cargo --version", "cargo -V", "cargo --list", "cargo version"], RunsProject, "-v", NONE),
    row(&["rustc --version", "rustc -V", "rustc -vV", "rustc --print"], RunsProject, "-v --verbose", Most(1)),
    row(&["rustup show", "rustup toolchain list", "rustup target list"], RunsProject, "-v --installed", NONE),
    row(&["rustfmt"], Writes, "-lqv --check --edition= --quiet --verbose", Inside),
    // JavaScript. Arguments after a script's name go to the script.
    row(
        &[
            "npm test",
            "npm t",
            "npm start",
            "npm ci",
            "npm install",
            "npm i",
            "pnpm test",
            "pnpm install",
            "pnpm i",
            "pnpm start",
            "yarn test",
            "yarn install",
            "yarn start",
        ],
        RunsProject,
        NPM,
        Chosen(0),
    ),
    row(
        &[
            "yarn build",
            "yarn lint",
            "yarn typecheck",
            "yarn format",
            "yarn check",
            "yarn dev",
            "pnpm build",
            "pnpm lint",
            "pnpm typecheck",
            "pnpm format",
            "pnpm check",
            "pnpm dev",
        ],
        RunsProject,
        NPM,
        Chosen(0),
    ),
    row(&["yarn"], RunsProject, NPM, NONE),
    row(&["npm run", "npm run-script", "pnpm run", "yarn run"], RunsProject, NPM, Chosen(1)),
    row(
        &["npm ls", "npm list", "pnpm ls", "pnpm list", "yarn list", "npm outdated", "pnpm outdated"],
        RunsProject,
        "-al -w= --depth= --all --json --long --workspace= --workspaces --omit= --parseable \
         --production --prod",
        Any,
    ),
    row(&["npm audit"], RunsProject, "--json --omit= --production", NONE),
    row(
        &["npm why", "npm explain", "pnpm why", "yarn why", "npm root", "npm bin"],
        RunsProject,
        "--json",
        Any,
    ),
    row(
        &["npm --version", "npm -v", "pnpm --version", "pnpm -v", "yarn --version", "yarn -v"],
        RunsProject,
        "",
        NONE,
    ),
    row(&["node --version", "node -v"], Says, "", NONE),
    row(&["node --check", "node -c"], Reads, "", Most(1)),
    row(&["node --test", "node"], RunsProject, "", Chosen(0)),
    row(
        &["npx tsc", "tsc", "pnpm tsc", "yarn tsc"],
        RunsProject,
        "-bv --noEmit --build --pretty --listFiles --version --skipLibCheck --strict --showConfig \
         --extendedDiagnostics",
        NONE,
    ),
    row(
        &["npx eslint", "eslint", "pnpm eslint", "yarn eslint"],
        RunsProject,
        "--ext= --quiet --max-warnings= --cache --no-cache --no-fix --no-color --version \
         --report-unused-disable-directives",
        Inside,
    ),
    row(
        &["npx prettier", "prettier", "pnpm prettier", "yarn prettier"],
        RunsProject,
        "-cl --check --list-different --log-level= --loglevel= --version --no-color",
        Inside,
    ),
    row(
        &[
            "npx jest",
            "jest",
            "npx vitest run",
            "npx vitest",
            "vitest run",
            "pnpm vitest run",
            "pnpm jest",
            "yarn jest",
        ],
        RunsProject,
        JEST,
        Inside,
    ),
    // Python.
    row(
        &["pytest", "python -m pytest", "python3 -m pytest", "uv run pytest", "poetry run pytest"],
        RunsProject,
        PYTEST,
        Inside,
    ),
    row(&["python -m unittest", "python3 -m unittest"], RunsProject, "-vqfbc -k= --verbose --quiet", Inside),
    row(
        &[
            "python --version",
            "python -V",
            "python3 --version",
            "python3 -V",
            "pip --version",
            "pip3 --version",
        ],
        Says,
        "",
        NONE,
    ),
    row(&["python", "python3"], RunsProject, "", Chosen(0)),
    row(
        &["mypy", "python -m mypy", "python3 -m mypy"],
        RunsProject,
        "--strict --ignore-missing-imports",
        Inside,
    ),
    row(
        &["ruff check", "ruff format --check"],
        RunsProject,
        "-qv --quiet --statistics --diff --no-fix",
        Inside,
    ),
    row(&["black --check", "black --diff"], RunsProject, "-qv --check --diff --quiet --color", Inside),
    row(
        &["pip list", "pip show", "pip freeze", "pip check", "pip3 list", "pip3 show", "pip3 freeze"],
        RunsProject,
        "-lv --local --verbose --format=",
        Any,
    ),
    // Others.
    row(
        &["make"],
        RunsProject,
        "-ksnBqi -j[=] --silent --quiet --dry-run --just-print --keep-going --always-make \
         --no-print-directory --jobs[=]",
        Chosen(usize::MAX),
    ),
    row(&["just"], RunsProject, "-ln --list --dry-run --summary --evaluate", Chosen(1)),
    row(
        &["go build", "go vet", "go list", "go test"],
        RunsProject,
        "-v -race -short -cover -failfast -json -benchmem -m -deps -run= -count= -timeout= -bench= \
         -tags= -parallel= -list= -cpu= -f= -p=",
        Inside,
    )
    .whole_words(),
    row(&["go fmt"], RunsProject, "-n -x", Inside).whole_words(),
    row(&["go version"], Says, "", NONE),
    row(&["go run"], RunsProject, "-race", Chosen(0)).whole_words(),
];
