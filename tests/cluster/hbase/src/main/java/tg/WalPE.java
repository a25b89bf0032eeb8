package tg;

import com.codahale.metrics.Histogram;
import com.codahale.metrics.Meter;
import com.codahale.metrics.Snapshot;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.wal.WALPerformanceEvaluation;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.util.ToolRunner;

/**
 * HBase's own WALPerformanceEvaluation, with its private histograms as one line of JSON per repetition.
 *
 * <p>Arguments: FS (local, raw, hdfs1, hdfs3) PROVIDER HSYNC THREADS TOTAL_OPS (0: warm up, then -Dsecs seconds, 4)
 * REPETITIONS FOLDER [-Dkey=value | options of WALPerformanceEvaluation].
 */
public class WalPE {
  public static void main(String[] arguments) {
    int code = 0;
    try {
      run(arguments);
    } catch (Throwable trouble) {
      trouble.printStackTrace();
      code = 1;
    }
    System.out.flush();
    Runtime.getRuntime().halt(code); // HBase leaves threads behind
  }

  static void run(String[] a) throws Exception {
    String fs = a[0], provider = a[1], hsync = a[2], folder = a[6];
    int threads = Integer.parseInt(a[3]), repetitions = Integer.parseInt(a[5]);
    long total = Long.parseLong(a[4]);
    Configuration conf = HBaseConfiguration.create();
    List<String> extra = new ArrayList<>();
    for (int i = 7; i < a.length; i++) {
      int equals = a[i].indexOf('=');
      if (a[i].startsWith("-D")) conf.set(a[i].substring(2, equals), a[i].substring(equals + 1));
      else extra.add(a[i]);
    }
    conf.set("hbase.wal.provider", provider);
    conf.set("hbase.wal.hsync", hsync);
    conf.setBoolean("fs.automatic.close", false);
    Case one = new Case(conf, base(conf, fs, folder), fs, provider, hsync, threads, extra);
    if (total == 0) { // short runs until the compiler has seen the code, which also say how many make that many seconds
      double rate = one.measure(Math.max(3000, threads * 200L), "pilot");
      rate = one.measure(Math.max((long) rate, threads * 20L), "pilot");
      total = Math.max((long) (rate * Double.parseDouble(System.getProperty("secs", "4"))), threads * 50L);
    }
    for (int i = 0; i < repetitions; i++) one.measure(total, Integer.toString(i));
  }

  /** Prepares the file system; returns the URI that folders are made below. */
  static String base(Configuration conf, String fs, String folder) throws Exception {
    if (fs.startsWith("hdfs")) {
      conf.set("hdfs.minidfs.basedir", folder + "/dfs");
      MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(Integer.parseInt(fs.substring(4))).build();
      cluster.waitActive();
      String uri = cluster.getFileSystem().getUri().toString();
      conf.set("fs.defaultFS", uri);
      return uri;
    }
    conf.set("hbase.unsafe.stream.capability.enforce", "false");
    if (fs.equals("raw")) conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
    conf.set("fs.defaultFS", "file:///");
    return "file://" + folder;
  }

  /** One case, which can be measured any number of times. */
  record Case(Configuration conf, String base, String fs, String provider, String hsync, int threads, List<String> extra) {

    /** Commits about `total` records; prints what was measured and returns records per second. */
    double measure(long total, String repetition) throws Exception {
      Configuration own = new Configuration(conf);
      String path = base + "/walpe-" + System.nanoTime();
      own.set("hbase.rootdir", path);
      int each = (int) Math.max(1, total / threads);
      List<String> options = new ArrayList<>(List.of("-path", path, "-threads", "" + threads, "-iterations", "" + each,
          "-keySize", "50", "-valueSize", "1024", "-noclosefs"));
      options.addAll(extra);
      WALPerformanceEvaluation tool = new WALPerformanceEvaluation();
      long began = System.nanoTime();
      ToolRunner.run(own, tool, options.toArray(new String[0]));
      double wall = (System.nanoTime() - began) / 1e9;
      Snapshot latency = ((Histogram) field(tool, "latencyHistogram")).getSnapshot();
      Snapshot sync = ((Histogram) field(tool, "syncHistogram")).getSnapshot();
      Snapshot grouped = ((Histogram) field(tool, "syncCountHistogram")).getSnapshot();
      long syncs = ((Meter) field(tool, "syncMeter")).getCount(), bytes = ((Meter) field(tool, "appendMeter")).getCount();
      long ops = (long) each * threads;
      System.out.printf(Locale.ROOT,
          "{\"fs\":\"%s\",\"provider\":\"%s\",\"hsync\":%s,\"threads\":%d,\"rep\":\"%s\",\"ops\":%d,"
              + "\"wall_s_incl_setup\":%.3f,\"syncs\":%d,\"ops_per_sync\":%.3f,\"count_per_sync_p50\":%.0f,"
              + "\"count_per_sync_max\":%d,\"append_bytes\":%d,\"lat_us\":%s,\"sync_us\":%s}%n",
          fs, provider, hsync, threads, repetition, ops, wall, syncs, (double) ops / Math.max(1, syncs),
          grouped.getMedian(), grouped.getMax(), bytes, micros(latency), micros(sync));
      System.out.flush();
      return ops / Math.max(0.001, latency.getMean() * each / 1e9);
    }
  }

  static Object field(WALPerformanceEvaluation tool, String name) throws Exception {
    Field field = WALPerformanceEvaluation.class.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(tool);
  }

  static String micros(Snapshot nanos) {
    return String.format(Locale.ROOT, "{\"mean\":%.1f,\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}", nanos.getMean() / 1e3,
        nanos.getMedian() / 1e3, nanos.get99thPercentile() / 1e3, nanos.getMax() / 1e3);
  }
}
