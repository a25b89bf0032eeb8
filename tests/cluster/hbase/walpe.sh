#!/bin/sh
# HBase's own WALPerformanceEvaluation with its histograms as JSON: the anchor to measure our log against.
# usage: walpe.sh FS PROVIDER HSYNC THREADS TOTAL_OPS REPETITIONS WORKDIR [-Dk=v | walpe options]
#   FS: raw (real file system, real fsync when HSYNC is true) | local (checksummed: never fsyncs) | hdfs1 | hdfs3
#   TOTAL_OPS 0: two runs to warm up, then about 4 s a repetition, or as long as JOPTS=-Dsecs=N says
# A JSON line a repetition on stdout (count, syncs, latency); HBase's own "Summary ... ops/s" lines on stderr.
# Builds beside itself on first use, so run a copy of this folder (tests/bench/hbase.py makes one).
cd "$(dirname "$0")" || exit 1
[ -f cp.txt ] || mvn -q -B -ntp compile dependency:build-classpath -Dmdep.outputFile=cp.txt 1>&2 || exit 1
fs=$1 p=$2 h=$3 t=$4 n=$5 r=$6 d=$7; shift 7; mkdir -p "$d"
# shellcheck disable=SC2046,SC2086
exec java -Xmx3g $JOPTS -Dlog4j.configuration="file:$PWD/walpe-log4j.properties" $(cat jvmopts) \
  -cp "target/classes:$(cat cp.txt)" tg.WalPE "$fs" "$p" "$h" "$t" "$n" "$r" "$d" "$@"
