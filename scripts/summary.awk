# Sums the `test result:` lines of cargo's output; prints `N passed, N failed`.
/^test result:/ {
    for (i = 2; i <= NF; i++) {
        if ($i ~ /^passed/) passed += $(i - 1)
        if ($i ~ /^failed/) failed += $(i - 1)
    }
}
END { printf "%d passed, %d failed\n", passed, failed }
